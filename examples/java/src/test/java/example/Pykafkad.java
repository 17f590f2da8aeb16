package example;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * A JUnit 5 extension: one broker for the run, reset before each test, which finds it as a parameter. One file to copy.
 * It starts `pykafkad serve`, and asks its control API; answers are JSON as text.
 */
public final class Pykafkad implements ParameterResolver, BeforeEachCallback {
    private static final Pattern READY =
            Pattern.compile("pykafkad ready with control=(\\S+) control\\.token=(\\S+) .*\\bon (\\S+)");

    @Override
    public void beforeEach(ExtensionContext context) throws Exception {
        broker(context).ask("POST", "/reset", null);
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == Broker.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return broker(context);
    }

    private static Broker broker(ExtensionContext context) {
        // The store of the whole run closes what is in it.
        return context.getRoot()
                .getStore(ExtensionContext.Namespace.create(Pykafkad.class))
                .getOrComputeIfAbsent(Broker.class, key -> new Broker(), Broker.class);
    }

    /** A broker in memory on a free port. */
    public static final class Broker implements ExtensionContext.Store.CloseableResource {
        public final String bootstrap;
        private final String url;
        private final String token;
        private final Process process;
        private final HttpClient client = HttpClient.newHttpClient();

        Broker() {
            String command = System.getenv().getOrDefault("PYKAFKAD", "pykafkad");
            List<String> words = new ArrayList<>(List.of(command.split(" ")));
            words.addAll(List.of("serve", "--listen", "127.0.0.1:0", "--memory", "64MB", "--control", "0",
                    "--set", "group.initial.rebalance.delay.ms=0", "--set", "offsets.topic.num.partitions=1"));
            try {
                process = new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.INHERIT).start();
                Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
                BufferedReader out = new BufferedReader(new InputStreamReader(process.getInputStream()));
                for (String line = out.readLine(); line != null; line = out.readLine()) {
                    Matcher ready = READY.matcher(line);
                    if (ready.matches()) {
                        url = ready.group(1);
                        token = ready.group(2);
                        bootstrap = ready.group(3);
                        return;
                    }
                }
            } catch (IOException problem) {
                throw new IllegalStateException(command + " does not start", problem);
            }
            throw new IllegalStateException(command + " has ended");
        }

        /** Any route of the control API: its answer. */
        public String ask(String method, String path, String body) throws IOException, InterruptedException {
            var content = body == null
                    ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body);
            HttpRequest request = HttpRequest.newBuilder(URI.create(url + path))
                    .header("Authorization", "Bearer " + token).header("Content-Type", "application/json")
                    .method(method, content).build();
            HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() >= 300) {
                throw new IOException(method + " " + path + ": " + answer.statusCode() + ": " + answer.body());
            }
            return answer.body();
        }

        public void createTopic(String name, int partitions) throws IOException, InterruptedException {
            ask("POST", "/topics", "{\"name\": \"%s\", \"partitions\": %d}".formatted(name, partitions));
        }

        /** The next request of an API to a topic is answered with an error; the number of the fault. */
        public int answer(String api, String error, String topic) throws IOException, InterruptedException {
            return number("number", ask("POST", "/faults", """
                    {"kind": "answer", "apis": ["%s"], "error": "%s", "topic": "%s", "times": 1}""".formatted(
                    api, error, topic)));
        }

        /** How often a fault has happened. */
        public int count(int fault) throws IOException, InterruptedException {
            return number("count", ask("GET", "/faults/" + fault, null));
        }

        private static int number(String name, String json) {
            Matcher found = Pattern.compile("\"" + name + "\": ?(\\d+)").matcher(json);
            if (!found.find()) {
                throw new IllegalStateException(name + " is not in " + json);
            }
            return Integer.parseInt(found.group(1));
        }

        @Override
        public void close() throws InterruptedException {
            process.destroy();
            process.waitFor();
        }
    }
}
