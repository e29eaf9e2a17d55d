package io.stategauge.spark;

import java.lang.reflect.Method;
import java.util.UUID;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryProgressEvent;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryStartedEvent;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent;

/**
 * Turns Spark's events into JSON. Events have a JSON form of their own from Spark 3.5 on, and idle
 * events exist only from then, so both are reached by name; a progress renders itself in all versions.
 */
final class EventJson {
  /** Characters kept of an exception: its message, and the stack down to its causes. */
  static final int MAX_EXCEPTION = 8192;

  private EventJson() {}

  /** Returns the id of the query that an event is about. */
  static UUID queryId(Entry.Kind kind, Object event) {
    switch (kind) {
      case PROGRESS:
        return ((QueryProgressEvent) event).progress().id();
      case STARTED:
        return ((QueryStartedEvent) event).id();
      case TERMINATED:
        return ((QueryTerminatedEvent) event).id();
      default:
        return (UUID) Reflect.call(event, "id");
    }
  }

  /** Returns the id of the run that a started or progress event is about. */
  static UUID runId(Entry.Kind kind, Object event) {
    return kind == Entry.Kind.STARTED
        ? ((QueryStartedEvent) event).runId()
        : ((QueryProgressEvent) event).progress().runId();
  }

  /** Returns the event as one line of JSON. */
  static String render(Entry.Kind kind, Object event) {
    switch (kind) {
      case PROGRESS:
        return Redaction.addresses(((QueryProgressEvent) event).progress().json());
      case STARTED:
        return started((QueryStartedEvent) event);
      case TERMINATED:
        return terminated((QueryTerminatedEvent) event);
      default:
        return idle(event);
    }
  }

  private static String started(QueryStartedEvent event) {
    Method json = Reflect.find(event.getClass(), "json");
    if (json != null) {
      return (String) Reflect.invoke(json, event);
    }
    StringBuilder out = ids(event.id(), event.runId());
    Json.member(out, "name", event.name());
    return Json.member(out, "timestamp", event.timestamp()).append('}').toString();
  }

  private static String idle(Object event) {
    StringBuilder out = ids((UUID) Reflect.call(event, "id"), (UUID) Reflect.call(event, "runId"));
    return Json.member(out, "timestamp", (String) Reflect.call(event, "timestamp")).append('}').toString();
  }

  /** By hand in all versions: the text of an exception is cut and cleaned before it leaves. */
  private static String terminated(QueryTerminatedEvent event) {
    StringBuilder out = ids(event.id(), event.runId());
    Json.member(out, "exception", exception((String) Reflect.orNull(event.exception())));
    Method errorClass = Reflect.find(event.getClass(), "errorClassOnException"); // 3.4
    Object value = errorClass == null ? null : Reflect.orNull(Reflect.invoke(errorClass, event));
    return Json.member(out, "errorClassOnException", (String) value).append('}').toString();
  }

  private static String exception(String text) {
    if (text == null) {
      return null;
    }
    String kept = text.length() > MAX_EXCEPTION ? text.substring(0, MAX_EXCEPTION) : text;
    return Redaction.message(kept);
  }

  private static StringBuilder ids(UUID id, UUID runId) {
    StringBuilder out = new StringBuilder("{");
    Json.member(out, "id", id.toString());
    return Json.member(out, "runId", runId.toString());
  }
}
