import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.File;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * Kafka's own message classes, driven over standard input and output, one line each.
 *
 *   list                           -> one line per message class in the jars: name, key or -1, first version, last version; then "."
 *   apis                           -> one line per API key: key, name, its stable versions, its listeners; then "."
 *   random NAME VERSION SEED N     -> N lines: bytes, the same bytes without unknown tagged fields, JSON; then "."
 *   echo NAME VERSION HEX          -> one line: the bytes after reading and writing, JSON; or "error" and the reason
 *   unexpected KEY VERSION HEX     -> one line: JSON of the answer to a request that meets an unexpected error; "null" for no answer
 *
 * Bytes are hexadecimal, "-" stands for none. Random values follow the SCHEMAS of each class: the fields of a version, and
 * whether they may be null. They are set through the setters, written with write() and printed with the class's JsonConverter.
 */
public final class MessageOracle {
    private static final HexFormat HEX = HexFormat.of();
    private static final String[] TEXTS = {"", "a", "topic-1", "größe", "\u0000", "😀 astral", "\uFFFD"};
    private static final int[] LENGTHS = {0, 1, 2, 126, 127, 128, 129, 300};
    private static final double[] DOUBLES = {0.0, -0.0, 1.5, -2.25, Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY,
        Double.MIN_VALUE, Double.MAX_VALUE};

    private final Map<String, Class<?>> classes = new TreeMap<>();
    private final Map<Class<?>, Map<String, Method>> setters = new HashMap<>();
    private final Map<Class<?>, Method> converters = new HashMap<>();
    private Random random = new Random(0);
    private List<List<RawTaggedField>> unknown = new ArrayList<>();
    private int budget;

    public static void main(String[] arguments) throws Exception {
        MessageOracle oracle = new MessageOracle();
        oracle.find();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8), 1 << 16);
        for (String line = in.readLine(); line != null; line = in.readLine())
            oracle.serve(line.split(" "), out);
        out.flush();
    }

    /** Every top-level class with a JsonConverter in the jars of the class path. */
    private void find() throws Exception {
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!new File(path).getName().startsWith("kafka"))
                continue;
            try (JarFile jar = new JarFile(path)) {
                for (String name : (Iterable<String>) jar.stream().map(entry -> entry.getName())::iterator) {
                    if (!name.endsWith("JsonConverter.class") || name.contains("$"))
                        continue;
                    String base = name.substring(0, name.length() - "JsonConverter.class".length());
                    if (jar.getEntry(base + ".class") == null)
                        continue;
                    Class<?> type = Class.forName(base.replace('/', '.'));
                    if (Message.class.isAssignableFrom(type))
                        classes.put(plainName(type.getSimpleName()), type);
                }
            }
        }
    }

    /** Names of the schema files: FetchRequestData is FetchRequest, DefaultPrincipalData stays. */
    private static String plainName(String name) {
        boolean cut = name.endsWith("RequestData") || name.endsWith("ResponseData") || name.endsWith("HeaderData");
        return cut ? name.substring(0, name.length() - 4) : name;
    }

    private void serve(String[] words, BufferedWriter out) throws Exception {
        if (words[0].equals("list")) {
            for (Map.Entry<String, Class<?>> entry : classes.entrySet()) {
                Message message = instance(entry.getValue());
                int key = message instanceof ApiMessage api ? api.apiKey() : -1;
                out.write(entry.getKey() + " " + key + " " + message.lowestSupportedVersion() + " " + message.highestSupportedVersion() + "\n");
            }
            out.write(".\n");
        } else if (words[0].equals("apis")) {
            for (ApiKeys key : ApiKeys.values()) {
                String versions = key.hasValidVersion() ? key.oldestVersion() + "-" + key.latestVersion(false) : "none";
                String listeners = key.messageType.listeners().stream().map(each -> each.name().toLowerCase()).collect(Collectors.joining(","));
                out.write(key.id + " " + key.name + " " + versions + " " + (listeners.isEmpty() ? "-" : listeners) + "\n");
            }
            out.write(".\n");
        } else if (words[0].equals("random")) {
            short version = Short.parseShort(words[2]);
            random = new Random((words[1] + " " + words[2] + " " + words[3]).hashCode());
            for (int count = Integer.parseInt(words[4]); count > 0; count--)
                out.write(example(classes.get(words[1]), version) + "\n");
            out.write(".\n");
        } else if (words[0].equals("unexpected")) {
            out.write(unexpected(ApiKeys.forId(Short.parseShort(words[1])), Short.parseShort(words[2]), words[3]) + "\n");
        } else {
            out.write(echo(classes.get(words[1]), Short.parseShort(words[2]), words[3]) + "\n");
        }
    }

    private static Message instance(Class<?> type) throws Exception {
        return (Message) type.getConstructor().newInstance();
    }

    // -- random values --------------------------------------------------------------------------------------------------

    private String example(Class<?> type, short version) throws Exception {
        unknown = new ArrayList<>();
        budget = 400;
        Message message = (Message) struct(type, version, 0);
        String json = json(message, version);
        String whole = bytes(message, version);
        unknown.forEach(List::clear);
        return whole + " " + bytes(message, version) + " " + json;
    }

    private Object struct(Class<?> type, short version, int depth) throws Exception {
        Message message = instance(type);
        for (BoundField field : ((Schema[]) type.getField("SCHEMAS").get(null))[version].fields()) {
            if (field.def.type instanceof TaggedFields tagged)
                tags(message, tagged, version, depth);
            else
                set(message, field.def, version, depth);
        }
        return message;
    }

    private void tags(Message message, TaggedFields tagged, short version, int depth) throws Exception {
        for (Field field : tagged.fields().values())
            if (random.nextInt(3) > 0)
                set(message, field, version, depth);
        if (random.nextInt(6) == 0) {
            int tag = random.nextInt(2) == 0 ? 100 : 100 + random.nextInt(Integer.MAX_VALUE - 1000);
            message.unknownTaggedFields().add(new RawTaggedField(tag, content(LENGTHS)));
            if (random.nextInt(2) == 0)
                message.unknownTaggedFields().add(new RawTaggedField(tag + 1 + random.nextInt(200), content(LENGTHS)));
            unknown.add(message.unknownTaggedFields());
        }
    }

    private void set(Message message, Field field, short version, int depth) throws Exception {
        Method setter = setters.computeIfAbsent(message.getClass(), MessageOracle::settersOf).get(field.name.replace("_", "").toLowerCase());
        if (setter == null)
            throw new IllegalStateException(message.getClass() + " has no setter for " + field.name);
        setter.invoke(message, value(field.type, setter, version, depth));
    }

    private static Map<String, Method> settersOf(Class<?> type) {
        Map<String, Method> found = new HashMap<>();
        for (Method method : type.getMethods())
            if (method.getName().startsWith("set") && method.getParameterCount() == 1)
                found.put(method.getName().substring(3).toLowerCase(), method);
        return found;
    }

    private Object value(Type type, Method setter, short version, int depth) throws Exception {
        Class<?> java = setter.getParameterTypes()[0];
        if (type.isNullable() && random.nextInt(5) == 0)
            return null;
        if (Collection.class.isAssignableFrom(java))
            return array(java, setter, type.arrayElementType().get(), version, depth);
        return Message.class.isAssignableFrom(java) ? struct(java, version, depth + 1) : scalar(type, java);
    }

    @SuppressWarnings("unchecked")
    private Object array(Class<?> java, Method setter, Type element, short version, int depth) throws Exception {
        boolean isList = java == List.class;
        Collection<Object> found = isList ? new ArrayList<>() : (Collection<Object>) java.getConstructor().newInstance();
        java.lang.reflect.Type holder = isList ? setter.getGenericParameterTypes()[0] : java.getGenericSuperclass();
        java.lang.reflect.Type inner = ((ParameterizedType) holder).getActualTypeArguments()[0];
        Class<?> of = inner instanceof ParameterizedType generic ? (Class<?>) generic.getRawType() : (Class<?>) inner;
        boolean isLong = random.nextInt(40) == 0 && (depth == 0 || !Message.class.isAssignableFrom(of));
        int count = isLong ? 126 + random.nextInt(4) : random.nextInt(4);
        for (; count > 0 && budget > 0; count--) {
            budget--;
            found.add(Message.class.isAssignableFrom(of) ? struct(of, version, depth + 1) : scalar(element, of));
        }
        return found;
    }

    private byte[] content(int[] lengths) {
        byte[] found = new byte[random.nextInt(60) == 0 && budget > 0 ? 16383 + random.nextInt(3) : lengths[random.nextInt(lengths.length)]];
        random.nextBytes(found);
        return found;
    }

    private String text() {
        if (random.nextInt(4) > 0)
            return TEXTS[random.nextInt(TEXTS.length)];
        return "x".repeat(random.nextInt(60) == 0 ? 32767 : LENGTHS[random.nextInt(LENGTHS.length)]);
    }

    private long integer(long low, long high) {
        switch (random.nextInt(6)) {
            case 0: return low;
            case 1: return high;
            case 2: return 0;
            case 3: return 1;
            case 4: return Math.max(low, -1);
            default: return high == Long.MAX_VALUE ? random.nextLong() : low + Math.floorMod(random.nextLong(), high - low + 1);
        }
    }

    private Object scalar(Type type, Class<?> java) {
        switch (type.toString()) {
            case "BOOLEAN": return random.nextBoolean();
            case "INT8": return (byte) integer(Byte.MIN_VALUE, Byte.MAX_VALUE);
            case "INT16": return (short) integer(Short.MIN_VALUE, Short.MAX_VALUE);
            case "UINT16": return (int) integer(0, 0xFFFF);
            case "INT32": return (int) integer(Integer.MIN_VALUE, Integer.MAX_VALUE);
            case "UINT32": return integer(0, 0xFFFFFFFFL);
            case "INT64": return integer(Long.MIN_VALUE, Long.MAX_VALUE);
            case "FLOAT64": return DOUBLES[random.nextInt(DOUBLES.length)];
            case "UUID": return random.nextInt(3) == 0 ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), random.nextLong());
            default:
        }
        if (java == String.class)
            return text();
        if (java == byte[].class)
            return content(LENGTHS);
        if (java == ByteBuffer.class)
            return ByteBuffer.wrap(content(LENGTHS));
        return MemoryRecords.readableRecords(ByteBuffer.wrap(content(LENGTHS)));
    }

    // -- bytes and JSON -------------------------------------------------------------------------------------------------

    private static String bytes(Message message, short version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] found = new byte[buffer.remaining()];
        buffer.get(found);
        return found.length == 0 ? "-" : HEX.formatHex(found);
    }

    private String json(Message message, short version) throws Exception {
        Method write = converters.get(message.getClass());
        if (write == null) {
            Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
            write = converter.getMethod("write", message.getClass(), short.class, boolean.class);
            converters.put(message.getClass(), write);
        }
        return ((JsonNode) write.invoke(null, message, version, false)).toString();
    }

    private String unexpected(ApiKeys key, short version, String hex) throws Exception {
        ByteBuffer data = ByteBuffer.wrap(hex.equals("-") ? new byte[0] : HEX.parseHex(hex));
        AbstractRequest request = AbstractRequest.parseRequest(key, version, new ByteBufferAccessor(data)).request;
        AbstractResponse answer = request.getErrorResponse(0, new IllegalStateException("a bug"));
        return answer == null ? "null" : json((Message) answer.data(), version);
    }

    private String echo(Class<?> type, short version, String hex) throws Exception {
        ByteBuffer data = ByteBuffer.wrap(hex.equals("-") ? new byte[0] : HEX.parseHex(hex));
        try {
            Message message = (Message) type.getConstructor(Readable.class, short.class).newInstance(new ByteBufferAccessor(data), version);
            if (data.hasRemaining())
                return "error " + data.remaining() + " bytes are left over";
            return bytes(message, version) + " " + json(message, version);
        } catch (InvocationTargetException error) {
            return "error " + String.valueOf(error.getCause()).replace('\n', ' ');
        }
    }
}
