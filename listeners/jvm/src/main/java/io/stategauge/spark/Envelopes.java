package io.stategauge.spark;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * Writes envelopes. A body, from "at" on, is written once; the head before it when the event goes
 * out, since it tells what has been dropped by then. Bodies belong to one thread, heads to any.
 */
final class Envelopes {
  private static final int MAX_QUERIES = 4096;

  private final String sender;
  private final String cluster;
  private final DriverFacts facts;

  /** The settings of each running query as they were at its start: a run keeps them. */
  private final Map<UUID, Map<String, String>> confs = new HashMap<>();

  /** The number of the last interruption that each query's context was sent after. */
  private final Map<UUID, Long> toldAfter = new HashMap<>();

  private long executorChanges = -1;

  /**
   * Makes a writer.
   *
   * @param sender names this sender among all, a UUID
   * @param cluster null if none
   */
  Envelopes(String sender, String cluster, DriverFacts facts) {
    this.sender = sender;
    this.cluster = cluster;
    this.facts = facts;
  }

  /** Returns the whole envelope of an event that goes out now. */
  byte[] whole(Entry entry, long dropped) {
    byte[] head = ("{\"v\":1,\"sender\":\"" + sender + "\",\"seq\":" + entry.seq + ",\"dropped\":" + dropped + ",")
        .getBytes(StandardCharsets.UTF_8);
    ByteArrayOutputStream out = new ByteArrayOutputStream(head.length + entry.body.length);
    out.write(head, 0, head.length);
    out.write(entry.body, 0, entry.body.length);
    return out.toByteArray();
  }

  /**
   * Writes the body of an event of Spark.
   *
   * @param interruptions how often delivery came back after failing; the other end may have forgotten
   *     a query's settings then, so they are told again
   */
  byte[] body(Entry.Kind kind, UUID query, String event, long atMs, long interruptions) {
    StringBuilder out = open(atMs, event.length());
    boolean fresh = !Long.valueOf(interruptions).equals(toldAfter.get(query));
    boolean context = kind == Entry.Kind.STARTED || kind == Entry.Kind.PROGRESS && fresh;
    if (context) {
      forgetWhenMany();
      toldAfter.put(query, interruptions);
      conf(out, confs.computeIfAbsent(query, facts::conf));
    }
    long changes = facts.executorChanges();
    if (context || changes != executorChanges) {
      executorChanges = changes;
      executors(out);
    }
    return close(out, kind, event);
  }

  /** Queries whose end was dropped would stay; being told twice costs the others little. */
  private void forgetWhenMany() {
    if (toldAfter.size() >= MAX_QUERIES) {
      confs.clear();
      toldAfter.clear();
    }
  }

  /** Forgets a query that ended. */
  void ended(UUID query) {
    confs.remove(query);
    toldAfter.remove(query);
  }

  /**
   * Makes the heartbeats that are due: one with all queries, or one for each where messages are spread
   * by key.
   */
  List<Entry> heartbeats(long atMs, boolean keyed) {
    List<DriverFacts.ActiveQuery> active = facts.active();
    List<Entry> out = new ArrayList<>();
    if (!keyed || active.isEmpty()) {
      out.add(heartbeat(sender, active, atMs));
      return out;
    }
    for (DriverFacts.ActiveQuery query : active) {
      out.add(heartbeat(query.id, Collections.singletonList(query), atMs));
    }
    return out;
  }

  private Entry heartbeat(String key, List<DriverFacts.ActiveQuery> active, long atMs) {
    StringBuilder event = new StringBuilder("{\"active\":[");
    for (DriverFacts.ActiveQuery query : active) {
      event.append(event.charAt(event.length() - 1) == '[' ? "{" : ",{");
      Json.member(event, "id", query.id);
      Json.member(event, "runId", query.runId);
      Json.key(event, "triggerActive").append(query.triggerActive).append('}');
    }
    StringBuilder out = open(atMs, event.length());
    executors(out);
    Entry entry = new Entry(Entry.Kind.HEARTBEAT, null, atMs);
    entry.key = key;
    entry.body = close(out, Entry.Kind.HEARTBEAT, event.append("]}").toString());
    return entry;
  }

  private StringBuilder open(long atMs, int eventLength) {
    StringBuilder out = new StringBuilder(eventLength + 1024).append("\"at\":\"");
    out.append(Instant.ofEpochMilli(atMs)).append('"');
    Json.key(out, "app").append('{');
    facts.app().forEach((k, v) -> Json.member(out, k, v));
    if (cluster != null) {
      Json.member(out, "cluster", cluster);
    }
    return out.append('}');
  }

  private static byte[] close(StringBuilder out, Entry.Kind kind, String event) {
    Json.member(out, "type", kind.word);
    Json.key(out, "event").append(event).append('}');
    return out.toString().getBytes(StandardCharsets.UTF_8);
  }

  private static void conf(StringBuilder out, Map<String, String> conf) {
    if (conf.isEmpty()) {
      return;
    }
    Json.key(out, "conf").append('{');
    conf.forEach((k, v) -> Json.member(out, k, v));
    out.append('}');
  }

  private void executors(StringBuilder out) {
    Map<String, Long> executors = facts.executors();
    if (executors.isEmpty()) {
      return;
    }
    Json.key(out, "executors").append('{');
    executors.forEach((k, v) -> Json.member(out, k, v));
    out.append('}');
  }
}
