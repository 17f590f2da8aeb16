import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.security.Permission;
import java.security.Policy;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;

import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main methods of Kafka's command-line tools in one JVM, many at a time: a new JVM for each would cost a second.
 *
 * A request on standard input is the call's number, its time limit in milliseconds, and a list of texts: the text on the tool's
 * standard input, its class, its arguments. The answer on standard output is the call's number, the exit code, the tool's texts
 * on standard output and on standard error. All numbers are 32 bits, big-endian; every text and the list follow their length.
 * A request whose list is empty asks the call of that number to end, as a signal would; it has no answer.
 */
public final class ToolRunner {
    private static final int TIMED_OUT = -1;
    private static final InheritableThreadLocal<Call> CURRENT = new InheritableThreadLocal<>();
    private static final Map<Integer, Call> RUNNING = new ConcurrentHashMap<>();

    /** Thrown in a tool instead of ending the process. */
    private static final class Ended extends Error {
        Ended() {
            super("the tool has ended", null, false, false);
        }
    }

    /** Catches ends of the process without Kafka's Exit, as in the argument parser of some tools. Java 17 to 23 have it. */
    @SuppressWarnings("removal")
    private static final class Guard extends SecurityManager {
        @Override
        public void checkExit(int status) {
            exit(status, null);
        }

        @Override
        public void checkPermission(Permission permission) {
        }
    }

    /** With a security manager, some of Java's own code asks the policy. */
    @SuppressWarnings("removal")
    private static final class EverythingAllowed extends Policy {
        @Override
        public boolean implies(ProtectionDomain domain, Permission permission) {
            return true;
        }
    }

    /** One running tool: the threads that it starts and their output belong to it. */
    private static final class Call {
        final ByteArrayOutputStream output = new ByteArrayOutputStream();
        final ByteArrayOutputStream errors = new ByteArrayOutputStream();
        final ConcurrentLinkedDeque<Runnable> hooks = new ConcurrentLinkedDeque<>();
        final InputStream input;
        private boolean ended;
        private int code;

        Call(String input) {
            this.input = new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8));
        }

        /** Only the first end counts, as for a process. */
        synchronized void end(int status) {
            if (!ended) {
                ended = true;
                code = status;
            }
        }

        synchronized void print(ByteArrayOutputStream stream, byte[] bytes, int from, int length) {
            if (!ended)
                stream.write(bytes, from, length);
        }
    }

    /** System.out or System.err: output goes to the call whose thread prints it. */
    private static final class Printed extends OutputStream {
        private final boolean toErrors;

        Printed(boolean toErrors) {
            this.toErrors = toErrors;
        }

        @Override
        public void write(int one) {
            write(new byte[] {(byte) one}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int from, int length) {
            Call call = CURRENT.get();
            if (call != null)
                call.print(toErrors ? call.errors : call.output, bytes, from, length);
        }
    }

    /** System.in: the text of the call. */
    private static final class Typed extends InputStream {
        @Override
        public int read() throws IOException {
            return CURRENT.get().input.read();
        }

        @Override
        public int read(byte[] bytes, int from, int length) throws IOException {
            return CURRENT.get().input.read(bytes, from, length);
        }

        @Override
        public int available() throws IOException {
            return CURRENT.get().input.available();
        }
    }

    @SuppressWarnings("removal")
    public static void main(String[] arguments) throws IOException {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream answers = new DataOutputStream(System.out);
        System.setOut(new PrintStream(new Printed(false), true));
        System.setErr(new PrintStream(new Printed(true), true));
        System.setIn(new Typed());
        Policy.setPolicy(new EverythingAllowed());
        System.setSecurityManager(new Guard());
        Exit.setExitProcedure(ToolRunner::exit);
        Exit.setHaltProcedure(ToolRunner::exit);
        Exit.setShutdownHookAdder((name, hook) -> CURRENT.get().hooks.push(hook));
        try {
            while (true) {
                int number = requests.readInt();
                int timeoutMs = requests.readInt();
                List<String> texts = new ArrayList<>();
                for (int count = requests.readInt(); count > 0; count--)
                    texts.add(new String(requests.readNBytes(requests.readInt()), StandardCharsets.UTF_8));
                Call running = RUNNING.get(number);
                if (!texts.isEmpty())
                    begin(number, timeoutMs, texts, answers);
                else if (running != null)
                    start("end-" + number, () -> runHooks(running));
            }
        } catch (EOFException finished) {
            Runtime.getRuntime().halt(0);
        }
    }

    private static void exit(int status, String message) {
        if (message != null)
            System.err.println(message);
        CURRENT.get().end(status);
        throw new Ended();
    }

    private static void begin(int number, int timeoutMs, List<String> texts, DataOutputStream answers) {
        Call call = new Call(texts.get(0));
        String[] arguments = texts.subList(2, texts.size()).toArray(new String[0]);
        RUNNING.put(number, call);
        Thread thread = start("tool-" + number, () -> run(call, texts.get(1), arguments));
        start("call-" + number, () -> watch(number, timeoutMs, call, thread, answers));
    }

    private static Thread start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static void watch(int number, int timeoutMs, Call call, Thread thread, DataOutputStream answers) {
        try {
            thread.join(timeoutMs);
            if (thread.isAlive()) {
                StackTraceElement[] where = thread.getStackTrace();
                for (StackTraceElement frame : where)
                    call.errors.writeBytes(("\tat " + frame + "\n").getBytes(StandardCharsets.UTF_8));
                call.end(TIMED_OUT);
                runHooks(call);
                thread.interrupt();
            }
            RUNNING.remove(number);
            answer(number, call, answers);
        } catch (InterruptedException | IOException broken) {
            Runtime.getRuntime().halt(1);
        }
    }

    private static void run(Call call, String className, String[] arguments) {
        CURRENT.set(call);
        try {
            Class.forName(className).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Ended)) {
                System.err.print("Exception in thread \"main\" ");
                thrown.getCause().printStackTrace();
                call.end(1);
            }
        } catch (ReflectiveOperationException noTool) {
            noTool.printStackTrace();
            call.end(1);
        }
        call.end(0);
        runHooks(call);
    }

    private static void runHooks(Call call) {
        for (Runnable hook = call.hooks.poll(); hook != null; hook = call.hooks.poll())
            hook.run();
    }

    private static void answer(int number, Call call, DataOutputStream answers) throws IOException {
        synchronized (answers) {
            answers.writeInt(number);
            answers.writeInt(call.code);
            for (ByteArrayOutputStream printed : Arrays.asList(call.output, call.errors)) {
                byte[] bytes = printed.toByteArray();
                answers.writeInt(bytes.length);
                answers.write(bytes);
            }
            answers.flush();
        }
    }
}
