package io.stategauge.spark;

import java.lang.ref.WeakReference;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;

/** The facts as the running Spark tells them. What a version does not have is left out. */
final class SparkFacts implements DriverFacts {
  /** The settings that decide how figures are read. Nothing else of the conf ever leaves. */
  static final List<String> CONF =
      Collections.unmodifiableList(
          Arrays.asList(
              "spark.sql.streaming.stateStore.providerClass",
              "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
              "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage",
              "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB",
              "spark.sql.streaming.stateStore.minDeltasForSnapshot",
              "spark.sql.streaming.minBatchesToRetain",
              "spark.sql.streaming.stateStore.maintenanceInterval",
              "spark.locality.wait",
              "spark.sql.shuffle.partitions"));

  private static final long MIB = 1L << 20;
  private static final long MIN_OVERHEAD_BYTES = 384 * MIB;
  private static final int MAX_SESSIONS = 256;

  private final ExecutorWatch watch;
  private final Map<UUID, UUID> running = new ConcurrentHashMap<>();

  /** The running queries that were found in a session: those can also be missed there. */
  private final Set<UUID> found = new HashSet<>();

  /** The sessions in which queries were started, for their queries' status. */
  private final CopyOnWriteArrayList<WeakReference<Object>> sessions = new CopyOnWriteArrayList<>();

  private volatile SparkContext context;
  private Map<String, String> app = Collections.emptyMap();
  private Map<String, Long> fixed = Collections.emptyMap();

  /**
   * Makes the facts of the application that runs in this JVM.
   *
   * @param atEnd called when the application ends, on Spark's listener bus
   */
  SparkFacts(Runnable atEnd) {
    this.watch = new ExecutorWatch(atEnd);
  }

  /** Returns the SparkContext that runs in this JVM, null if there is none. Makes none. */
  static SparkContext activeContext() {
    try {
      Class<?> companion = Class.forName("org.apache.spark.SparkContext$", true, SparkContext.class.getClassLoader());
      Object module = companion.getField("MODULE$").get(null);
      return (SparkContext) Reflect.orNull(Reflect.call(module, "getActive"));
    } catch (ReflectiveOperationException | RuntimeException e) {
      return null;
    }
  }

  /** Begins to count executors and to wait for the end, once there is a SparkContext. */
  void attach() {
    if (context != null) {
      return;
    }
    SparkContext found = activeContext();
    if (found == null) {
      return;
    }
    found.addSparkListener(watch);
    app = describe(found);
    fixed = sizes(found.getConf());
    context = found;
  }

  /** Notes the sessions of the thread that starts a query. Cheap; for the callback itself. */
  void noteSessions() {
    noteSession("getActiveSession");
    noteSession("getDefaultSession");
  }

  private void noteSession(String getter) {
    Method method = Reflect.find(org.apache.spark.sql.SparkSession.class, getter);
    Object session = method == null ? null : Reflect.orNull(Reflect.invoke(method, null));
    if (session == null) {
      return;
    }
    for (WeakReference<Object> known : sessions) {
      if (known.get() == session) {
        return;
      }
    }
    sessions.removeIf(known -> known.get() == null);
    if (sessions.size() < MAX_SESSIONS) {
      sessions.add(new WeakReference<>(session));
    }
  }

  @Override
  public Map<String, String> app() {
    attach();
    return app;
  }

  @Override
  public Map<String, String> conf(UUID queryId) {
    Object query = query(queryId);
    Object session = query == null ? firstSession() : Reflect.call(query, "sparkSession");
    Map<String, String> out = new LinkedHashMap<>();
    if (session == null) {
      return out;
    }
    Object conf = Reflect.call(session, "conf");
    Method get = Reflect.find(conf.getClass(), "get", String.class);
    for (String key : CONF) {
      String value = get == null ? null : value(get, conf, key);
      if (value != null) {
        out.put(key, value);
      }
    }
    return out;
  }

  /** A setting of the session with Spark's own default; null where the version does not know it. */
  private static String value(Method get, Object conf, String key) {
    try {
      return (String) Reflect.invoke(get, conf, key);
    } catch (NoSuchElementException e) {
      return null;
    }
  }

  @Override
  public Map<String, Long> executors() {
    attach();
    if (context == null) {
      return Collections.emptyMap();
    }
    Map<String, Long> out = new LinkedHashMap<>();
    try {
      count(out);
    } catch (RuntimeException | LinkageError e) {
      out.clear(); // the store of the status is internal to Spark, a version may differ
    }
    out.putAll(fixed);
    out.put("losses", watch.losses());
    return out;
  }

  private void count(Map<String, Long> out) {
    Object store = Reflect.call(context, "statusStore");
    Method list = Reflect.find(store.getClass(), "executorList", boolean.class);
    if (list == null) {
      return;
    }
    boolean local = context.isLocal();
    long count = 0;
    long cores = 0;
    long gcTimeMs = 0;
    Object all = Reflect.call(Reflect.invoke(list, store, true), "iterator");
    while ((Boolean) Reflect.call(all, "hasNext")) {
      Object executor = Reflect.call(all, "next");
      if (!local && "driver".equals(Reflect.call(executor, "id"))) {
        continue;
      }
      count++;
      cores += (Integer) Reflect.call(executor, "totalCores");
      gcTimeMs += (Long) Reflect.call(executor, "totalGCTime");
    }
    out.put("count", count);
    out.put("cores", cores);
    out.put("gcTimeMs", gcTimeMs);
  }

  @Override
  public long executorChanges() {
    attach();
    return watch.changes();
  }

  @Override
  public List<ActiveQuery> active() {
    List<ActiveQuery> out = new ArrayList<>();
    for (Map.Entry<UUID, UUID> e : running.entrySet()) {
      Object query = query(e.getKey());
      if (query == null && found.contains(e.getKey())) {
        ended(e.getKey()); // the event that told it was dropped, or is still to come
        continue;
      }
      boolean triggerActive = query == null || isTriggerActive(query);
      out.add(new ActiveQuery(e.getKey().toString(), e.getValue().toString(), triggerActive));
    }
    return out;
  }

  /** A query of which nothing can be learned counts as working, so that its silence stays suspect. */
  private static boolean isTriggerActive(Object query) {
    try {
      return (Boolean) Reflect.call(Reflect.call(query, "status"), "isTriggerActive");
    } catch (RuntimeException e) {
      return true;
    }
  }

  @Override
  public void started(UUID queryId, UUID runId) {
    running.put(queryId, runId);
  }

  @Override
  public void ended(UUID queryId) {
    running.remove(queryId);
    found.remove(queryId);
  }

  /** Finds a running query in the sessions known, null if it is in none of them. */
  private Object query(UUID id) {
    for (WeakReference<Object> known : sessions) {
      Object session = known.get();
      Object query = session == null ? null : query(session, id);
      if (query != null) {
        found.add(id);
        return query;
      }
    }
    return null;
  }

  private static Object query(Object session, UUID id) {
    try {
      Object streams = Reflect.call(session, "streams");
      Method get = Reflect.find(streams.getClass(), "get", UUID.class);
      return get == null ? null : Reflect.invoke(get, streams, id);
    } catch (RuntimeException e) {
      return null; // the session was closed
    }
  }

  private Object firstSession() {
    for (WeakReference<Object> known : sessions) {
      if (known.get() != null) {
        return known.get();
      }
    }
    return null;
  }

  private static Map<String, String> describe(SparkContext context) {
    Map<String, String> out = new LinkedHashMap<>();
    out.put("id", context.applicationId());
    out.put("name", context.appName());
    out.put("sparkVersion", context.version());
    return out;
  }

  /** What one executor was asked for; in local mode what the JVM may use. */
  private static Map<String, Long> sizes(SparkConf conf) {
    Map<String, Long> out = new LinkedHashMap<>();
    if (conf.get("spark.master", "").startsWith("local") && !conf.get("spark.master", "").startsWith("local-cluster")) {
      out.put("memoryBytes", Runtime.getRuntime().maxMemory());
      return out;
    }
    try {
      long memory = conf.getSizeAsBytes("spark.executor.memory", "1g");
      double factor = conf.getDouble("spark.executor.memoryOverheadFactor", 0.1);
      long least = Math.max(MIN_OVERHEAD_BYTES, (long) (memory * factor));
      long overhead = conf.contains("spark.executor.memoryOverhead")
          ? conf.getSizeAsMb("spark.executor.memoryOverhead") * MIB
          : least;
      out.put("memoryBytes", memory);
      out.put("overheadBytes", overhead);
    } catch (RuntimeException e) {
      out.clear(); // not our part to judge the setting
    }
    return out;
  }
}
