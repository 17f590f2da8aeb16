import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/** A telemetry plug-in for a real Kafka: each push becomes a file in the directory of the property telemetry.directory. */
public class KeepTelemetry implements MetricsReporter, ClientTelemetry {
    private final Path directory = Path.of(System.getProperty("telemetry.directory"));

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return (context, payload) -> {
            ByteBuffer data = payload.data().duplicate();
            byte[] bytes = new byte[data.remaining()];
            data.get(bytes);
            try {
                String name = payload.clientInstanceId() + "." + System.nanoTime();
                // A file has its final name only once it is complete.
                Files.write(directory.resolve(name), bytes);
                Files.move(directory.resolve(name), directory.resolve(name + ".otlp"));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        };
    }

    @Override
    public void configure(Map<String, ?> settings) { }

    @Override
    public void init(List<KafkaMetric> metrics) { }

    @Override
    public void metricChange(KafkaMetric metric) { }

    @Override
    public void metricRemoval(KafkaMetric metric) { }

    @Override
    public void close() { }
}
