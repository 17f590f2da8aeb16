// `java -cp JARS RegistryRound.java REGISTRY SUBJECT BASE64`: Confluent's own Java client of a schema registry, as Flink
// carries it. It registers an Avro schema and two that follow, reads a value that another program has written (BASE64)
// by the schema whose id it begins with, and prints lines of NAME=TEXT; `written` is a value of its own in base64.
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.util.Base64;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.avro.AvroSchema;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import org.apache.flink.avro.shaded.org.apache.avro.Schema;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericData;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericDatumReader;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericDatumWriter;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericRecord;
import org.apache.flink.avro.shaded.org.apache.avro.io.BinaryEncoder;
import org.apache.flink.avro.shaded.org.apache.avro.io.DecoderFactory;
import org.apache.flink.avro.shaded.org.apache.avro.io.EncoderFactory;
import org.apache.flink.formats.avro.registry.confluent.ConfluentSchemaRegistryCoder;

public class RegistryRound {
    private static final String HEAD = "{\"type\":\"record\",\"name\":\"Order\",\"namespace\":\"shop\",\"fields\":[";
    private static final String FIRST = HEAD + "{\"name\":\"amount\",\"type\":\"int\"}]}";
    private static final String WIDER =
        HEAD + "{\"name\":\"amount\",\"type\":\"int\"},{\"name\":\"city\",\"type\":\"string\",\"default\":\"Bern\"}]}";
    private static final String OTHER = HEAD + "{\"name\":\"amount\",\"type\":\"string\"}]}";

    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        String subject = arguments[1];
        CachedSchemaRegistryClient client = new CachedSchemaRegistryClient(url, 100);
        int first = client.register(subject, new AvroSchema(FIRST));
        tell("again", new CachedSchemaRegistryClient(url, 100).register(subject, new AvroSchema(FIRST)) == first);
        tell("found", client.getId(subject, new AvroSchema(FIRST)) == first);
        tell("compatible", client.testCompatibility(subject, new AvroSchema(WIDER)));
        tell("incompatible", !client.testCompatibility(subject, new AvroSchema(OTHER)));
        client.register(subject, new AvroSchema(WIDER));
        tell("versions", client.getAllVersions(subject));
        tell("latest", client.getLatestSchemaMetadata(subject).getVersion());
        try {
            client.register(subject, new AvroSchema(OTHER));
            tell("refused", "no");
        } catch (RestClientException refused) {
            tell("refused", refused.getStatus() + " " + refused.getErrorCode());
        }
        try {
            new CachedSchemaRegistryClient(url, 100).getSchemaById(999);
            tell("unknown", "no");
        } catch (RestClientException unknown) {
            tell("unknown", unknown.getStatus() + " " + unknown.getErrorCode());
        }
        tell("level", client.updateCompatibility(subject, "FULL") + " " + client.getCompatibility(subject));

        // The bytes before a value are the coder's, which asks the registry by a client of its own.
        Schema schema = new Schema.Parser().parse(WIDER);
        GenericRecord order = new GenericData.Record(schema);
        order.put("amount", 7);
        order.put("city", "Basel");
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        new ConfluentSchemaRegistryCoder(subject, new CachedSchemaRegistryClient(url, 100)).writeSchema(schema, out);
        BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(out, null);
        new GenericDatumWriter<GenericRecord>(schema).write(order, encoder);
        tell("written", Base64.getEncoder().encodeToString(out.toByteArray()));
        ByteArrayInputStream in = new ByteArrayInputStream(Base64.getDecoder().decode(arguments[2]));
        Schema writer = new ConfluentSchemaRegistryCoder(new CachedSchemaRegistryClient(url, 100)).readSchema(in);
        GenericDatumReader<GenericRecord> reader = new GenericDatumReader<>(writer, schema);
        tell("read", reader.read(null, DecoderFactory.get().directBinaryDecoder(in, null)));
    }

    private static void tell(String name, Object value) {
        System.out.println(name + "=" + value);
    }
}
