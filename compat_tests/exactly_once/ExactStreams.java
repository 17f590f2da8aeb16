import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * A Streams application of three parts: a count of words, a count of words in windows of ten seconds, and a join of two
 * topics. The properties "name.of.lines", "name.of.words", "name.of.windows", "name.of.left", "name.of.right" and
 * "name.of.pairs" name its topics; all keys and values are text.
 */
public class ExactStreams {
    private static final Duration LONG = Duration.ofHours(1);

    public static void main(String[] arguments) throws IOException {
        Properties properties = new Properties();
        try (InputStream file = new FileInputStream(arguments[0])) {
            properties.load(file);
        }
        Serde<String> text = Serdes.String();
        Consumed<String, String> consumed = Consumed.with(text, text);
        Produced<String, String> produced = Produced.with(text, text);
        StreamsBuilder builder = new StreamsBuilder();

        KStream<String, String> words = builder.stream(properties.getProperty("name.of.lines"), consumed)
            .flatMapValues(line -> List.of(line.split(" ")));
        words.groupBy((key, word) -> word, Grouped.with(text, text))
            .count()
            .toStream()
            .mapValues(count -> count.toString())
            .to(properties.getProperty("name.of.words"), produced);
        words.groupBy((key, word) -> word, Grouped.with(text, text))
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), LONG))
            .count()
            .toStream((window, count) -> window.key() + "@" + window.window().start())
            .mapValues(count -> count.toString())
            .to(properties.getProperty("name.of.windows"), produced);
        builder.stream(properties.getProperty("name.of.left"), consumed)
            .join(
                builder.stream(properties.getProperty("name.of.right"), consumed),
                (left, right) -> left + "+" + right,
                JoinWindows.ofTimeDifferenceAndGrace(LONG, LONG),
                StreamJoined.with(text, text, text))
            .to(properties.getProperty("name.of.pairs"), produced);

        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
}
