package example;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The program that is tested: it writes orders, and sums up what was ordered. */
public final class Orders {
    private Orders() {}

    public static void place(String bootstrap, String customer, int... amounts) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new IntegerSerializer())) {
            for (int amount : amounts) {
                producer.send(new ProducerRecord<>("orders", customer, amount)).get();
            }
        }
    }

    public static Map<String, Integer> sums(String bootstrap, int count) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", "sums");
        settings.put("auto.offset.reset", "earliest");
        Map<String, Integer> found = new TreeMap<>();
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new IntegerDeserializer())) {
            consumer.subscribe(List.of("orders"));
            for (int seen = 0; seen < count; ) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    found.merge(record.key(), record.value(), Integer::sum);
                    seen++;
                }
            }
        }
        return found;
    }
}
