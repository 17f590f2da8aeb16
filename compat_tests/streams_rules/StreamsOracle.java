// What Kafka's coordinator decides for streams groups (KIP-1071), in the notation of cases.py: each line of standard
// input is a case, and comes out again with Kafka's decision behind it. The first argument says which part decides.
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.*;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.*;
import org.apache.kafka.coordinator.group.streams.*;
import org.apache.kafka.coordinator.group.streams.assignor.*;
import org.apache.kafka.coordinator.group.streams.topics.*;
import org.apache.kafka.timeline.*;
import org.slf4j.LoggerFactory;

public class StreamsOracle {
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "assignments" -> Assignments.main(args);
            case "topologies" -> Topologies.main(args);
            case "steps" -> Steps.main(args);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    // StickyTaskAssignor: who gets which task.
    static class Assignments {
        static Map<String, Set<Integer>> tasks(String text) {
            Map<String, Set<Integer>> result = new HashMap<>();
            for (String each : text.split(",")) if (!each.isEmpty()) {
                String[] pair = each.split(":");
                Set<Integer> numbers = new HashSet<>();
                for (String number : pair[1].split("\\.")) numbers.add(Integer.parseInt(number));
                result.put(pair[0], numbers);
            }
            return result;
        }
        static String text(Map<String, Set<Integer>> tasks) {
            return new TreeMap<>(tasks).entrySet().stream().filter(e -> !e.getValue().isEmpty()).map(e -> e.getKey() + ":" + e.getValue().stream().sorted().map(String::valueOf).collect(Collectors.joining("."))).collect(Collectors.joining(","));
        }
        public static void main(String[] args) throws Exception {
            Scanner in = new Scanner(System.in, "UTF-8");
            StringBuilder out = new StringBuilder();
            while (in.hasNextLine()) {
                String[] row = in.nextLine().split("\t", -1);
                String newest = row[1];
                Map<String, AssignmentMemberSpec> rows = new LinkedHashMap<>();
                for (String each : row[0].split(";")) {
                    String[] f = each.split("\\|", -1);
                    rows.put(f[0], new AssignmentMemberSpec(Optional.empty(), Optional.empty(), tasks(f[2]), tasks(f[3]), Map.of(), f[1], Map.of(), Map.of(), Map.of()));
                }
                SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
                TimelineHashMap<String, AssignmentMemberSpec> group = new TimelineHashMap<>(registry, 0);
                rows.forEach((id, spec) -> { if (!id.equals(newest)) group.put(id, spec); });
                Map<String, AssignmentMemberSpec> specs = new HashMap<>();
                group.forEach(specs::put);
                if (!newest.isEmpty()) specs.put(newest, rows.get(newest));
                SortedMap<String, int[]> subs = new TreeMap<>();
                for (String each : row[2].split(",")) {
                    String[] pair = each.split(":");
                    boolean s = pair[1].endsWith("s");
                    subs.put(pair[0], new int[] {Integer.parseInt(s ? pair[1].substring(0, pair[1].length() - 1) : pair[1]), s ? 1 : 0});
                }
                TopologyDescriber describer = new TopologyDescriber() {
                    public List<String> subtopologies() { return subs.keySet().stream().toList(); }
                    public int maxNumInputPartitions(String id) { return subs.get(id)[0]; }
                    public boolean isStateful(String id) { return subs.get(id)[1] == 1; }
                };
                GroupAssignment result = new StickyTaskAssignor().assign(new GroupSpecImpl(Collections.unmodifiableMap(specs), new TreeMap<>(Map.of("num.standby.replicas", row[3]))), describer);
                String found = new TreeMap<>(result.members()).entrySet().stream().map(e -> e.getKey() + "|" + text(e.getValue().activeTasks()) + "|" + text(e.getValue().standbyTasks())).collect(Collectors.joining(";"));
                out.append(String.join("\t", row[0], row[1], row[2], row[3], found)).append("\n");
            }
            System.out.print(out);
        }
    }

    // InternalTopicManager: a topology held against the topics that exist.
    static class Topologies {
        static List<String> list(String t, String sep) { return t.isEmpty() ? new ArrayList<>() : new ArrayList<>(Arrays.asList(t.split(sep, -1))); }
        static List<Short> numbers(String t) { return list(t, "\\.").stream().map(Short::parseShort).collect(Collectors.toList()); }
        static List<TopicInfo> infos(String t) { return list(t, ",").stream().map(x -> { String[] p = x.split(":"); return new TopicInfo().setName(p[0]).setPartitions(Integer.parseInt(p[1])); }).collect(Collectors.toList()); }
        public static void main(String[] a) throws Exception {
            Scanner in = new Scanner(System.in, "UTF-8");
            StringBuilder out = new StringBuilder();
            while (in.hasNextLine()) {
                String line = in.nextLine();
                String[] row = line.split("\t", -1);
                Map<String, Integer> topics = new HashMap<>();
                for (String x : list(row[0], ",")) { String[] p = x.split(":"); topics.put(p[0], Integer.parseInt(p[1])); }
                Topology t = new Topology().setEpoch(0);
                for (String s : list(row[1], ";")) {
                    String[] f = s.split("\\|", -1);
                    Subtopology sub = new Subtopology().setSubtopologyId(f[0]).setSourceTopics(list(f[1], ",")).setRepartitionSinkTopics(list(f[2], ",")).setRepartitionSourceTopics(infos(f[3])).setStateChangelogTopics(infos(f[4]));
                    List<CopartitionGroup> groups = new ArrayList<>();
                    for (String g : list(f[5], "\\+")) { String[] p = g.split("/", -1); groups.add(new CopartitionGroup().setSourceTopics(numbers(p[0])).setRepartitionSourceTopics(numbers(p[1]))); }
                    sub.setCopartitionGroups(groups);
                    t.subtopologies().add(sub);
                }
                CoordinatorMetadataImage image = new CoordinatorMetadataImage() {
                    public Set<Uuid> topicIds() { return Set.of(); }
                    public Set<String> topicNames() { return topics.keySet(); }
                    public Optional<TopicMetadata> topicMetadata(String n) {
                        if (!topics.containsKey(n)) return Optional.empty();
                        return Optional.of(new TopicMetadata() {
                            public String name() { return n; }
                            public Uuid id() { return Uuid.ZERO_UUID; }
                            public int partitionCount() { return topics.get(n); }
                            public List<String> partitionRacks(int p) { return List.of(); }
                        });
                    }
                    public Optional<TopicMetadata> topicMetadata(Uuid id) { return Optional.empty(); }
                    public CoordinatorMetadataDelta emptyDelta() { return null; }
                    public long version() { return 0; }
                    public boolean isEmpty() { return false; }
                };
                String result;
                try {
                    StreamsTopology topology = StreamsTopology.fromHeartbeatRequest(t);
                    ConfiguredTopology c = InternalTopicManager.configureTopics(LoggerFactory.getLogger("x"), "g", "m", 0L, topology, image, Time.SYSTEM);
                    result = c.topicConfigurationException().map(e -> e.status().code() + " " + e.getMessage()).orElse("ready") + "\t"
                        + c.subtopologies().map(m -> m.entrySet().stream().map(e -> e.getKey() + ":" + e.getValue().numberOfTasks()).collect(Collectors.joining(","))).orElse("")
                        + "\t" + c.internalTopicsToBeCreated().values().stream().map(x -> x.name() + ":" + x.numPartitions()).collect(Collectors.joining(","));
                } catch (ApiException e) { result = "error " + e.getClass().getSimpleName() + " " + e.getMessage() + "\t\t"; }
                catch (RuntimeException e) { result = "error Unknown\t\t"; }
                out.append(line).append("\t").append(result).append("\n");
            }
            System.out.print(out);
        }
    }

    // CurrentAssignmentBuilder: one step of a member towards its target.
    static class Steps {
        static List<String> list(String t, String sep) { return t.isEmpty() ? List.of() : Arrays.asList(t.split(sep, -1)); }
        static Map<String, Set<Integer>> sets(String t) { Map<String, Set<Integer>> r = new HashMap<>(); for (String x : list(t, ",")) { String[] p = x.split(":"); r.put(p[0], list(p[1], "\\.").stream().map(Integer::parseInt).collect(Collectors.toSet())); } return r; }
        static Map<String, Map<Integer, Integer>> epochs(String t) { Map<String, Map<Integer, Integer>> r = new HashMap<>(); for (String x : list(t, ",")) { String[] p = x.split(":"); Map<Integer, Integer> m = new HashMap<>(); for (String y : p[1].split("\\.")) { String[] q = y.split("@"); m.put(Integer.parseInt(q[0]), Integer.parseInt(q[1])); } r.put(p[0], m); } return r; }
        static TasksTupleWithEpochs tasks(String t) { String[] p = t.split("\\|", -1); return new TasksTupleWithEpochs(epochs(p[0]), sets(p[1]), sets(p[2])); }
        static TasksTuple tuple(String t) { String[] p = t.split("\\|", -1); return new TasksTuple(sets(p[0]), sets(p[1]), sets(p[2])); }
        static String text(Map<String, Set<Integer>> m) { return new TreeMap<>(m).entrySet().stream().map(e -> e.getKey() + ":" + e.getValue().stream().sorted().map(String::valueOf).collect(Collectors.joining("."))).collect(Collectors.joining(",")); }
        static String etext(Map<String, Map<Integer, Integer>> m) { return new TreeMap<>(m).entrySet().stream().map(e -> e.getKey() + ":" + new TreeMap<>(e.getValue()).entrySet().stream().map(x -> x.getKey() + "@" + x.getValue()).collect(Collectors.joining("."))).collect(Collectors.joining(",")); }
        static String text(TasksTupleWithEpochs t) { return etext(t.activeTasksWithEpochs()) + "|" + text(t.standbyTasks()) + "|" + text(t.warmupTasks()); }
        public static void main(String[] a) {
            Scanner in = new Scanner(System.in, "UTF-8");
            StringBuilder out = new StringBuilder();
            while (in.hasNextLine()) {
                String line = in.nextLine(); String[] f = line.split("\t", -1);
                // state epoch previous assigned revoking | target epoch, target | owned or - | active processes s:p=P;.. | standby s:p=P+P | warmup
                MemberState state = MemberState.fromValue(Byte.parseByte(f[0]));
                StreamsGroupMember member = StreamsGroupMember.Builder.withDefaults("m").setProcessId("P").setState(state).setMemberEpoch(Integer.parseInt(f[1])).setPreviousMemberEpoch(Integer.parseInt(f[2])).setAssignedTasks(tasks(f[3])).setTasksPendingRevocation(tasks(f[4])).build();
                Map<String, String> active = new HashMap<>(); for (String x : list(f[8], ";")) { String[] p = x.split("="); active.put(p[0], p[1]); }
                Map<String, Set<String>> standby = new HashMap<>(), warmup = new HashMap<>();
                for (String x : list(f[9], ";")) { String[] p = x.split("="); standby.put(p[0], Set.of(p[1].split("\\+"))); }
                for (String x : list(f[10], ";")) { String[] p = x.split("="); warmup.put(p[0], Set.of(p[1].split("\\+"))); }
                String result;
                try {
                    StreamsGroupMember n = new CurrentAssignmentBuilder(member).withTargetAssignment(Integer.parseInt(f[5]), tuple(f[6]))
                        .withCurrentActiveTaskProcessId((s, p) -> active.get(s + ":" + p)).withCurrentStandbyTaskProcessIds((s, p) -> standby.getOrDefault(s + ":" + p, Set.of()))
                        .withCurrentWarmupTaskProcessIds((s, p) -> warmup.getOrDefault(s + ":" + p, Set.of())).withOwnedAssignment(f[7].equals("-") ? null : tuple(f[7])).build();
                    result = n.state().value() + "\t" + n.memberEpoch() + "\t" + n.previousMemberEpoch() + "\t" + text(n.assignedTasks()) + "\t" + text(n.tasksPendingRevocation());
                } catch (RuntimeException e) { result = "error " + e.getClass().getSimpleName() + " " + e.getMessage(); }
                out.append(line).append("\t").append(result).append("\n");
            }
            System.out.print(out);
        }
    }
}
