package io.stategauge.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.SinkProgress;
import org.apache.spark.sql.streaming.SourceProgress;
import org.apache.spark.sql.streaming.StateOperatorProgress;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryIdleEvent;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryProgressEvent;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryStartedEvent;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent;
import org.apache.spark.sql.streaming.StreamingQueryProgress;
import scala.Option;

/** Events as Spark makes them, and settings. */
final class Samples {
  static final UUID QUERY = UUID.fromString("0b8f6a52-5d0c-4c57-9a3e-6c1f5f0e7a11");
  static final UUID RUN = UUID.fromString("7c2d9d3b-90f1-4f0e-8a55-02a4b7f9c322");

  private static final Pattern BATCH = Pattern.compile("\"batchId\":(\\d+)");
  private static final Pattern SEQ = Pattern.compile("\"seq\":(\\d+)");
  private static final Pattern DROPPED = Pattern.compile("\"dropped\":(\\d+)");

  private Samples() {}

  static QueryStartedEvent started() {
    return new QueryStartedEvent(QUERY, RUN, "orders", "2026-11-29T08:00:00.000Z");
  }

  static QueryIdleEvent idle() {
    return new QueryIdleEvent(QUERY, RUN, "2026-11-29T08:00:10.000Z");
  }

  static QueryTerminatedEvent terminated(String exception) {
    return new QueryTerminatedEvent(QUERY, RUN, Option.apply(exception), Option.apply(null));
  }

  static QueryProgressEvent progress(long batch) {
    return progress(batch, "KafkaV2[Subscribe[orders]]");
  }

  static QueryProgressEvent progress(long batch, String source) {
    Map<String, Long> durations = new HashMap<>();
    for (String key : List.of("addBatch", "commitOffsets", "getBatch", "latestOffset", "queryPlanning", "triggerExecution", "walCommit")) {
      durations.put(key, 40 + batch % 7);
    }
    SourceProgress[] sources = {
      new SourceProgress(source, "{\"orders\":{\"0\":" + batch + "}}", "{\"orders\":{\"0\":" + (batch + 1) + "}}", "{\"orders\":{\"0\":" + (batch + 2) + "}}", 500, 500, 480, new HashMap<>())
    };
    return new QueryProgressEvent(
        new StreamingQueryProgress(
            QUERY, RUN, "orders", "2026-11-29T08:00:00.000Z", batch, 1000, durations, new HashMap<>(),
            new StateOperatorProgress[] {operator()}, sources, new SinkProgress("noop", 500, new HashMap<>()),
            new HashMap<String, Row>()));
  }

  private static StateOperatorProgress operator() {
    Map<String, Long> custom = new HashMap<>();
    for (int i = 0; i < 40; i++) {
      custom.put("rocksdbFigureNumber" + i, 1000L + i);
    }
    return new StateOperatorProgress("stateStoreSave", 1000, 100, 20, 3, 1, 30, 1 << 20, 0, 4, 4, custom);
  }

  /** Settings with fast times, in pairs of key and value. */
  static Settings settings(String... pairs) {
    Map<String, String> conf = new HashMap<>();
    conf.put("spark.stategauge.url", "http://127.0.0.1:9");
    conf.put("spark.stategauge.flush.interval", "20ms");
    conf.put("spark.stategauge.http.connect.timeout", "2s");
    conf.put("spark.stategauge.http.read.timeout", "2s");
    for (int i = 0; i < pairs.length; i += 2) {
      conf.put("spark.stategauge." + pairs[i], pairs[i + 1]);
    }
    return new Settings(conf);
  }

  static List<Long> batches(List<String> lines) {
    return numbers(BATCH, lines);
  }

  static List<Long> seqs(List<String> lines) {
    return numbers(SEQ, lines);
  }

  static long lastDropped(List<String> lines) {
    List<Long> all = numbers(DROPPED, lines);
    return all.get(all.size() - 1);
  }

  private static List<Long> numbers(Pattern pattern, List<String> lines) {
    List<Long> out = new ArrayList<>();
    for (String line : lines) {
      Matcher m = pattern.matcher(line);
      if (m.find()) {
        out.add(Long.parseLong(m.group(1)));
      }
    }
    return out;
  }

  static List<Long> range(long from, long to) {
    List<Long> out = new ArrayList<>();
    for (long i = from; i < to; i++) {
      out.add(i);
    }
    return out;
  }
}
