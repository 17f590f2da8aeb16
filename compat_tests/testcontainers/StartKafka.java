import org.testcontainers.containers.GenericContainer;
import org.testcontainers.kafka.ConfluentKafkaContainer;
import org.testcontainers.kafka.KafkaContainer;
import org.testcontainers.utility.DockerImageName;

/** Starts an image by a module of Testcontainers, prints where clients reach it, and stops it when its input ends. */
public final class StartKafka {
    public static void main(String[] words) throws Exception {
        DockerImageName image = DockerImageName.parse(words[0]);
        try (GenericContainer<?> kafka = container(words[2], image)) {
            kafka.withNetworkMode(words[1]);
            kafka.start();
            System.out.println("bootstrap=" + bootstrap(kafka));
            while (System.in.read() >= 0) {
            }
        }
    }

    @SuppressWarnings("deprecation")
    private static GenericContainer<?> container(String kind, DockerImageName image) {
        return switch (kind) {
            case "apache" -> new KafkaContainer(image.asCompatibleSubstituteFor("apache/kafka"));
            case "confluent" -> new ConfluentKafkaContainer(image.asCompatibleSubstituteFor("confluentinc/cp-kafka"));
            case "older" -> new org.testcontainers.containers.KafkaContainer(
                    image.asCompatibleSubstituteFor("confluentinc/cp-kafka")).withKraft();
            case "zookeeper" -> new org.testcontainers.containers.KafkaContainer(
                    image.asCompatibleSubstituteFor("confluentinc/cp-kafka"));
            default -> throw new IllegalArgumentException(kind);
        };
    }

    @SuppressWarnings("deprecation")
    private static String bootstrap(GenericContainer<?> kafka) {
        if (kafka instanceof KafkaContainer apache) {
            return apache.getBootstrapServers();
        }
        if (kafka instanceof ConfluentKafkaContainer confluent) {
            return confluent.getBootstrapServers();
        }
        return ((org.testcontainers.containers.KafkaContainer) kafka).getBootstrapServers();
    }
}
