package example.spring;

import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.ConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.core.ProducerFactory;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.util.backoff.FixedBackOff;

/** The application that is tested: it reads orders, and writes an invoice for each. */
@Configuration
@EnableKafka
public class Billing {
    public static final int PRICE = 5;

    @Value("${kafka.bootstrap}")
    private String bootstrap;

    @Bean
    public ProducerFactory<String, Integer> producers() {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap);
        return new DefaultKafkaProducerFactory<>(settings, new StringSerializer(), new IntegerSerializer());
    }

    @Bean
    public KafkaTemplate<String, Integer> template(ProducerFactory<String, Integer> producers) {
        return new KafkaTemplate<>(producers);
    }

    @Bean
    public ConsumerFactory<String, Integer> consumers() {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest");
        return new DefaultKafkaConsumerFactory<>(settings, new StringDeserializer(), new IntegerDeserializer());
    }

    @Bean
    public ConcurrentKafkaListenerContainerFactory<String, Integer> kafkaListenerContainerFactory(
            ConsumerFactory<String, Integer> consumers) {
        var factory = new ConcurrentKafkaListenerContainerFactory<String, Integer>();
        factory.setConsumerFactory(consumers);
        factory.setCommonErrorHandler(new DefaultErrorHandler(new FixedBackOff(10, 3)));
        return factory;
    }

    @Bean
    public Listener listener(KafkaTemplate<String, Integer> template) {
        return new Listener(template);
    }

    /** What is done with an order. An exception has it delivered again. */
    public static class Listener {
        private final KafkaTemplate<String, Integer> template;

        Listener(KafkaTemplate<String, Integer> template) {
            this.template = template;
        }

        @KafkaListener(topics = "orders", groupId = "spring-billing")
        public void bill(ConsumerRecord<String, Integer> order) {
            template.send("invoices", order.key(), order.value() * PRICE).join();
        }
    }
}
