package io.stategauge.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPOutputStream;

/** Posts NDJSON, gzipped, over connections that are kept alive. */
final class HttpTransport implements Transport {
  /** The longest request to be left alone that is believed. */
  static final long MAX_RETRY_AFTER_MS = 300_000;

  private static final int MAX_ANSWER_BYTES = 64 << 10;
  private static final Pattern ACCEPTED = Pattern.compile("\"accepted\"\\s*:\\s*(\\d{1,9})");
  private static final Pattern DUPLICATES = Pattern.compile("\"duplicates\"\\s*:\\s*(\\d{1,9})");

  private final Settings settings;
  private final URL url;
  private final Headers headers;
  private volatile HttpURLConnection current;

  HttpTransport(Settings settings) throws IOException {
    this.settings = settings;
    this.url = settings.url.toURL();
    this.headers = new Headers(settings.token, settings.headerFile);
  }

  @Override
  public boolean isKeyed() {
    return false;
  }

  @Override
  public Result send(List<Message> messages) {
    try {
      return post(ndjson(messages), messages.size());
    } catch (IOException | RuntimeException e) {
      return Result.of(Outcome.RETRY, Redaction.message(String.valueOf(e)));
    }
  }

  @Override
  public void close() {
    HttpURLConnection c = current;
    if (c != null) {
      c.disconnect();
    }
  }

  private static byte[] ndjson(List<Message> messages) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream(4096);
    try (GZIPOutputStream gzip = new GZIPOutputStream(out, 4096)) {
      for (Message m : messages) {
        gzip.write(m.envelope);
        gzip.write('\n');
      }
    }
    return out.toByteArray();
  }

  private Result post(byte[] body, int count) throws IOException {
    HttpURLConnection c = open();
    current = c;
    boolean answered = false;
    try {
      // Fixed length also keeps the JDK from posting a second time by itself.
      c.setFixedLengthStreamingMode(body.length);
      try (OutputStream out = c.getOutputStream()) {
        out.write(body);
      }
      int status = c.getResponseCode();
      String answer = read(status < 400 ? c.getInputStream() : c.getErrorStream());
      answered = true;
      return judge(status, c.getHeaderField("Retry-After"), answer, count);
    } finally {
      current = null;
      if (!answered) {
        c.disconnect();
      }
    }
  }

  private HttpURLConnection open() throws IOException {
    HttpURLConnection c = (HttpURLConnection) url.openConnection();
    c.setConnectTimeout(settings.connectTimeoutMs);
    c.setReadTimeout(settings.readTimeoutMs);
    c.setInstanceFollowRedirects(false); // a redirected POST would become a GET
    c.setUseCaches(false);
    c.setRequestMethod("POST");
    c.setDoOutput(true);
    c.setRequestProperty("Content-Type", "application/x-ndjson");
    c.setRequestProperty("Content-Encoding", "gzip");
    c.setRequestProperty("User-Agent", "stategauge-listener-jvm");
    headers.addTo(c);
    return c;
  }

  /** Reads an answer to its end, so that the connection can be used again. */
  private String read(InputStream in) throws IOException {
    if (in == null) {
      return "";
    }
    long deadline = System.nanoTime() + 2_000_000L * settings.readTimeoutMs;
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    byte[] buffer = new byte[4096];
    try (InputStream body = in) {
      for (int n = body.read(buffer); n >= 0; n = body.read(buffer)) {
        out.write(buffer, 0, n);
        if (out.size() > MAX_ANSWER_BYTES || System.nanoTime() > deadline) {
          throw new IOException("the answer is too long or too slow");
        }
      }
    }
    return new String(out.toByteArray(), StandardCharsets.UTF_8);
  }

  private static Result judge(int status, String retryAfter, String answer, int count) {
    if (status >= 200 && status < 300) {
      return Result.of(Outcome.DELIVERED, rejected(answer, count));
    }
    String reason = "HTTP status " + status;
    if (status == 413) {
      return Result.of(Outcome.TOO_LARGE, reason);
    }
    // 408: our body came too slowly, the same may come again.
    if (status >= 500 || status == 429 || status == 408) {
      return new Result(Outcome.RETRY, reason, retryAfterMs(retryAfter, System.currentTimeMillis()));
    }
    return Result.of(Outcome.REFUSED, reason);
  }

  private static String rejected(String answer, int count) {
    Matcher accepted = ACCEPTED.matcher(answer);
    Matcher duplicates = DUPLICATES.matcher(answer);
    if (!accepted.find() || !duplicates.find()) {
      return "";
    }
    int rejected = count - Integer.parseInt(accepted.group(1)) - Integer.parseInt(duplicates.group(1));
    return rejected <= 0 ? "" : "the collector rejected " + rejected + " of " + count + " events";
  }

  /** Reads seconds or an HTTP date; 0 if it is absent or neither. */
  static long retryAfterMs(String header, long nowMs) {
    if (header == null) {
      return 0;
    }
    String text = header.trim();
    long ms = 0;
    try {
      ms = text.matches("\\d{1,9}")
          ? Long.parseLong(text) * 1000
          : ZonedDateTime.parse(text, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant().toEpochMilli() - nowMs;
    } catch (DateTimeException e) {
      return 0;
    }
    return Math.max(0, Math.min(ms, MAX_RETRY_AFTER_MS));
  }
}
