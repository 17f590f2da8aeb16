import java.util.Arrays;

import kafka.Kafka;
import kafka.tools.StorageTool;

/**
 * Formats the directories of a new broker and starts the broker, in one JVM: a JVM for Kafka's tool alone would cost a second.
 *
 * The first argument is the file of properties, the others are those of the tool.
 */
public final class FormatAndServe {
    public static void main(String[] arguments) {
        int code = StorageTool.execute(Arrays.copyOfRange(arguments, 1, arguments.length), System.out);
        if (code != 0)
            System.exit(code);
        Kafka.main(new String[] {arguments[0]});
    }
}
