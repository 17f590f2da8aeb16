package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(Pykafkad.class)
class OrdersTest {
    @BeforeEach
    void topic(Pykafkad.Broker broker) throws Exception {
        broker.createTopic("orders", 3);
    }

    @Test
    void ordersSurviveALeaderThatMoves(Pykafkad.Broker broker) throws Exception {
        int fault = broker.answer("Produce", "NOT_LEADER_OR_FOLLOWER", "orders");
        Orders.place(broker.bootstrap, "ann", 2);
        assertEquals(1, broker.count(fault));
        String records = broker.ask("POST", "/waits/records", "{\"topic\": \"orders\", \"count\": 1}");
        assertTrue(records.contains("\"ann\""), records);
    }

    @Test
    void ordersAreSummedUp(Pykafkad.Broker broker) throws Exception {
        Orders.place(broker.bootstrap, "ann", 1, 2, 3);
        assertEquals(Map.of("ann", 6), Orders.sums(broker.bootstrap, 3));
        broker.ask("POST", "/waits/lag", "{\"group\": \"sums\", \"lag\": 0}");
    }

    @Test
    void aMisspeltFaultIsNamed(Pykafkad.Broker broker) {
        IOException problem =
                assertThrows(IOException.class, () -> broker.answer("Produze", "NOT_LEADER_OR_FOLLOWER", "orders"));
        assertTrue(problem.getMessage().contains("Produce"), problem.getMessage());
    }
}
