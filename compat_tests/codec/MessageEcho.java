import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.File;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarFile;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/**
 * The requests and responses of any release of Kafka since 2.8, driven over standard input and output, one line each.
 *
 *   list                    -> one line per request and response: name, key, first version, last version; then "."
 *   echo NAME VERSION HEX   -> one line: the bytes after reading and writing, JSON; or "error" and the reason
 */
public final class MessageEcho {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        Map<String, Class<?>> classes = find();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8), 1 << 16);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("echo")) {
                out.write(echo(classes.get(words[1]), Short.parseShort(words[2]), words[3]) + "\n");
                continue;
            }
            for (Map.Entry<String, Class<?>> entry : classes.entrySet()) {
                ApiMessage message = (ApiMessage) entry.getValue().getConstructor().newInstance();
                out.write(entry.getKey() + " " + message.apiKey() + " " + message.lowestSupportedVersion() + " "
                    + message.highestSupportedVersion() + "\n");
            }
            out.write(".\n");
        }
        out.flush();
    }

    private static Map<String, Class<?>> find() throws Exception {
        Map<String, Class<?>> classes = new TreeMap<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!new File(path).getName().startsWith("kafka-clients"))
                continue;
            try (JarFile jar = new JarFile(path)) {
                for (String entry : (Iterable<String>) jar.stream().map(each -> each.getName())::iterator) {
                    if (!entry.matches("org/apache/kafka/common/message/\\w+(Request|Response)Data\\.class"))
                        continue;
                    String name = entry.substring(0, entry.length() - ".class".length()).replace('/', '.');
                    classes.put(name.substring(name.lastIndexOf('.') + 1, name.length() - "Data".length()), Class.forName(name));
                }
            }
        }
        return classes;
    }

    private static String echo(Class<?> type, short version, String hex) throws Exception {
        ByteBuffer data = ByteBuffer.wrap(hex.equals("-") ? new byte[0] : HEX.parseHex(hex));
        try {
            Message message = (Message) type.getConstructor(Readable.class, short.class).newInstance(new ByteBufferAccessor(data), version);
            if (data.hasRemaining())
                return "error " + data.remaining() + " bytes are left over";
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(written), cache, version);
            Method write = Class.forName(type.getName() + "JsonConverter").getMethod("write", type, short.class, boolean.class);
            String bytes = HEX.formatHex(written.array(), 0, written.position());
            return (bytes.isEmpty() ? "-" : bytes) + " " + (JsonNode) write.invoke(null, message, version, false);
        } catch (InvocationTargetException error) {
            return "error " + String.valueOf(error.getCause()).replace('\n', ' ');
        }
    }
}
