import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;

/** Reads lines of a realm, a name and rules, with tabs between them, and prints Kafka's short name of each, or how it fails. */
public class ShortNames {
    public static void main(String[] arguments) throws Exception {
        StringBuilder output = new StringBuilder();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] fields = line.split("\t", -1);
            List<String> rules = new ArrayList<>(Arrays.asList(fields).subList(2, fields.length));
            String told;
            try {
                KerberosShortNamer namer = KerberosShortNamer.fromUnparsedRules(fields[0], rules);
                try {
                    told = "name\t" + namer.shortName(KerberosName.parse(fields[1]));
                } catch (Exception error) {
                    told = "no name\t";
                }
            } catch (RuntimeException error) {
                told = "no rule\t";
            }
            output.append(told).append('\n');
        }
        System.out.write(output.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }
}
