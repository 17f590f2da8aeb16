package example.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import example.Orders;
import example.Pykafkad;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.core.env.MapPropertySource;

@ExtendWith(Pykafkad.class)
class BillingTest {
    @BeforeEach
    void topics(Pykafkad.Broker broker) throws Exception {
        broker.createTopic("orders", 3);
        broker.createTopic("invoices", 1);
    }

    private static AnnotationConfigApplicationContext application(Pykafkad.Broker broker) {
        var context = new AnnotationConfigApplicationContext();
        Map<String, Object> settings = Map.of("kafka.bootstrap", broker.bootstrap);
        context.getEnvironment().getPropertySources().addFirst(new MapPropertySource("test", settings));
        context.register(Billing.class);
        context.refresh();
        return context;
    }

    @Test
    void ordersAreBilled(Pykafkad.Broker broker) throws Exception {
        Orders.place(broker.bootstrap, "ann", 1, 2, 3);
        try (var application = application(broker)) {
            String invoices = broker.ask("POST", "/waits/records", "{\"topic\": \"invoices\", \"count\": 3}");
            assertTrue(invoices.contains("\"ann\""), invoices);
            broker.ask("POST", "/waits/lag", "{\"group\": \"spring-billing\", \"lag\": 0}");
        }
    }

    @Test
    void aLeaderThatMovesLosesNoInvoice(Pykafkad.Broker broker) throws Exception {
        int fault = broker.answer("Produce", "NOT_LEADER_OR_FOLLOWER", "invoices");
        Orders.place(broker.bootstrap, "ann", 1);
        try (var application = application(broker)) {
            broker.ask("POST", "/waits/records", "{\"topic\": \"invoices\", \"count\": 1}");
            broker.ask("POST", "/waits/lag", "{\"group\": \"spring-billing\", \"lag\": 0}");
        }
        assertEquals(1, broker.count(fault));
    }
}
