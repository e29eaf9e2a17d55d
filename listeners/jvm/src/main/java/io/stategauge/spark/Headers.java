package io.stategauge.spark;

import java.io.File;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Headers of the user's own, with which he proves who he is. They come from a file of lines such as
 * {@code Authorization: Basic ...}, read again when it changes, so that tokens may be rotated. Their
 * values are secret: they are in no message of ours.
 */
final class Headers {
  private static final Pattern LINE =
      Pattern.compile("([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \\t]*([\\x20-\\x7e\\t]*?)[ \\t]*");
  private static final long MAX_FILE_BYTES = 64 << 10;

  private final String token;
  private final File file;
  private Map<String, String> fromFile = new LinkedHashMap<>();
  private long readModified = -1;
  private long readLength = -1;

  /**
   * Makes the headers.
   *
   * @param token bearer token, null if none
   * @param path file of header lines, null if none
   */
  Headers(String token, String path) {
    this.token = token != null && token.matches("[\\x21-\\x7e]+") ? token : null;
    this.file = path == null ? null : new File(path);
  }

  /** Adds the headers to a request. Fails if the file cannot be read or holds something else. */
  void addTo(HttpURLConnection request) throws IOException {
    if (token != null) {
      request.setRequestProperty("Authorization", "Bearer " + token);
    }
    if (file != null) {
      refresh();
      fromFile.forEach(request::setRequestProperty);
    }
  }

  private void refresh() throws IOException {
    long modified = file.lastModified();
    long length = file.length();
    if (modified == readModified && length == readLength && modified != 0) {
      return;
    }
    if (length > MAX_FILE_BYTES) {
      throw new IOException("header file " + file + " is too long");
    }
    fromFile = parse(Files.readAllLines(file.toPath(), StandardCharsets.UTF_8));
    readModified = modified;
    readLength = length;
  }

  private Map<String, String> parse(List<String> lines) throws IOException {
    Map<String, String> out = new LinkedHashMap<>();
    for (int i = 0; i < lines.size(); i++) {
      String line = lines.get(i);
      if (line.trim().isEmpty() || line.startsWith("#")) {
        continue;
      }
      Matcher m = LINE.matcher(line);
      if (!m.matches()) {
        throw new IOException("header file " + file + ", line " + (i + 1) + ": not a header line");
      }
      out.put(m.group(1), m.group(2));
    }
    return out;
  }
}
