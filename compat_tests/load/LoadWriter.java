import java.io.FileInputStream;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Writes numbers to the partitions of a topic in turn, until its standard input ends: LoadWriter PROPERTIES NAME TOPIC
 * PARTITIONS MILLISECONDS. It prints a line before each record is sent (S partition number), and one for its end (A
 * partition number offset, or E text).
 */
public class LoadWriter {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            settings.load(file);
        }
        String name = arguments[1];
        String topic = arguments[2];
        int partitions = Integer.parseInt(arguments[3]);
        int pause = Integer.parseInt(arguments[4]);
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; System.in.available() == 0; number++) {
                int partition = number % partitions;
                String place = partition + " " + number;
                tell("S " + place);
                producer.send(
                    new ProducerRecord<>(topic, partition, null, name + " " + number),
                    (metadata, error) -> tell(error == null ? "A " + place + " " + metadata.offset() : "E " + error));
                Thread.sleep(pause);
            }
        }
    }

    private static void tell(String line) {
        synchronized (System.out) {
            System.out.println(line);
            System.out.flush();
        }
    }
}
