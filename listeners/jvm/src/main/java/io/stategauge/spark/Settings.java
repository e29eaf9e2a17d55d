package io.stategauge.spark;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The settings under {@code spark.stategauge.}. A value that cannot be read is reported in {@link
 * #faults} and the default holds: watching a job must never stop it. Times are in milliseconds.
 */
final class Settings {
  /** What all keys begin with. */
  static final String PREFIX = "spark.stategauge.";

  private static final String KAFKA = "kafka.";
  private static final Pattern QUANTITY = Pattern.compile("\\s*(\\d{1,9})\\s*([a-zA-Z]*)\\s*");

  /** Where to post, null unless HTTP is chosen. */
  final URI url;

  /** The topic, null unless Kafka is chosen. */
  final String kafkaTopic;

  /** The producer's own settings, bootstrap.servers included. */
  final Properties kafka = new Properties();

  final int queueEvents;
  final long queueBytes;
  final int batchEvents;
  final long batchBytes;
  final long flushMs;
  final long heartbeatMs;
  final long stopMs;
  final int connectTimeoutMs;
  final int readTimeoutMs;

  /** A name for the cluster, null if none. */
  final String cluster;

  /** A bearer token, null if none. Secret. */
  final String token;

  /** A file of header lines, null if none. Its content is secret. */
  final String headerFile;

  final boolean debug;

  /** What is wrong with the settings, in words; no values that may be secret. */
  final List<String> faults = new ArrayList<>();

  private final Map<String, String> values = new TreeMap<>();

  /**
   * Reads the settings.
   *
   * @param conf all settings of the application; keys of others are passed over
   */
  Settings(Map<String, String> conf) {
    for (Map.Entry<String, String> e : conf.entrySet()) {
      if (e.getKey().startsWith(PREFIX)) {
        values.put(e.getKey().substring(PREFIX.length()), e.getValue().trim());
      }
    }
    queueEvents = (int) quantity("queue.size", 10_000, 1, 10_000_000, "");
    queueBytes = quantity("queue.bytes", 64L << 20, 64L << 10, 4L << 30, "bytes");
    batchEvents = (int) quantity("batch.size", 200, 1, 100_000, "");
    batchBytes = quantity("batch.bytes", 2L << 20, 1L << 10, 32L << 20, "bytes");
    flushMs = quantity("flush.interval", 1_000, 0, 3_600_000, "time");
    heartbeatMs = quantity("heartbeat.interval", 30_000, 1_000, 3_600_000, "time");
    stopMs = quantity("stop.timeout", 5_000, 0, 60_000, "time");
    connectTimeoutMs = (int) quantity("http.connect.timeout", 3_000, 1, 600_000, "time");
    readTimeoutMs = (int) quantity("http.read.timeout", 10_000, 1, 600_000, "time");
    cluster = text("cluster");
    token = text("token");
    headerFile = text("header.file");
    debug = Boolean.parseBoolean(values.get("debug"));
    kafkaTopic = kafka();
    url = kafkaTopic == null ? url() : null;
  }

  /** Reports whether there is somewhere to send to. */
  boolean isUsable() {
    return url != null || kafkaTopic != null;
  }

  /** Returns where the events go, for the log. */
  String destination() {
    return kafkaTopic == null ? String.valueOf(url) : "Kafka topic " + kafkaTopic;
  }

  private String text(String key) {
    String value = values.get(key);
    return value == null || value.isEmpty() ? null : value;
  }

  private String kafka() {
    for (Map.Entry<String, String> e : values.entrySet()) {
      String name = e.getKey();
      if (name.startsWith(KAFKA) && !name.equals("kafka.topic")) {
        kafka.setProperty(name.substring(KAFKA.length()), e.getValue());
      }
    }
    boolean servers = kafka.containsKey("bootstrap.servers");
    String topic = text("kafka.topic");
    if (servers != (topic != null)) {
      faults.add(PREFIX + "kafka.bootstrap.servers and " + PREFIX + "kafka.topic only work together");
      return null;
    }
    if (topic != null && text("url") != null) {
      faults.add(PREFIX + "url is passed over, because Kafka is set");
    }
    return topic;
  }

  private URI url() {
    String text = text("url");
    if (text == null) {
      faults.add("neither " + PREFIX + "url nor " + PREFIX + "kafka.topic is set");
      return null;
    }
    try {
      return checked(new URI(text));
    } catch (URISyntaxException e) {
      faults.add(PREFIX + "url is not a URL"); // the text may hold a password
      return null;
    }
  }

  private URI checked(URI url) throws URISyntaxException {
    String scheme = String.valueOf(url.getScheme()).toLowerCase(Locale.ROOT);
    if (url.getHost() == null || !(scheme.equals("http") || scheme.equals("https"))) {
      faults.add(PREFIX + "url must be http://host or https://host");
      return null;
    }
    if (url.getRawUserInfo() != null) {
      faults.add(PREFIX + "url must hold no user name; put an Authorization line into " + PREFIX + "header.file");
      return null;
    }
    String path = url.getPath() == null ? "" : url.getPath();
    return path.isEmpty() || path.equals("/") ? url.resolve("/api/v1/events") : url;
  }

  private long quantity(String key, long otherwise, long min, long max, String unit) {
    String text = text(key);
    if (text == null) {
      return otherwise;
    }
    long value = parse(text, unit);
    if (value < min || value > max) {
      faults.add(PREFIX + key + " (" + text + ") must be " + described(unit) + " from " + min + " to " + max
          + (unit.equals("time") ? " ms" : "") + "; " + otherwise + " holds");
      return otherwise;
    }
    return value;
  }

  private static String described(String unit) {
    return unit.isEmpty() ? "a number" : "a number of " + (unit.equals("time") ? "ms, s, m or h" : "b, k, m or g");
  }

  /** Returns the number with its unit applied, -1 if it cannot be read. */
  private static long parse(String text, String unit) {
    Matcher m = QUANTITY.matcher(text);
    if (!m.matches()) {
      return -1;
    }
    long factor = factor(m.group(2).toLowerCase(Locale.ROOT), unit);
    return factor < 0 ? -1 : Long.parseLong(m.group(1)) * factor;
  }

  private static long factor(String suffix, String unit) {
    switch (unit + " " + suffix) {
      case " ":
      case "bytes ":
      case "bytes b":
      case "time ms":
        return 1;
      case "bytes k":
      case "bytes kb":
        return 1L << 10;
      case "bytes m":
      case "bytes mb":
        return 1L << 20;
      case "bytes g":
      case "bytes gb":
        return 1L << 30;
      case "time ":
      case "time s":
        return 1_000;
      case "time m":
      case "time min":
        return 60_000;
      case "time h":
        return 3_600_000;
      default:
        return -1;
    }
  }
}
