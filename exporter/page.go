package exporter

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Names of formats in the exporter's own metrics.
const (
	formatText        = "text"
	formatOpenMetrics = "openmetrics"
	formatProtobuf    = "protobuf"
	formatOther       = "other"
)

// formatOf classes f; empty for what expfmt does not know.
func formatOf(f expfmt.Format) string {
	switch f.FormatType() {
	case expfmt.TypeTextPlain:
		return formatText
	case expfmt.TypeOpenMetrics:
		if strings.Contains(string(f), "version=2") {
			return formatOther
		}
		return formatOpenMetrics
	case expfmt.TypeProtoDelim:
		return formatProtobuf
	case expfmt.TypeProtoText, expfmt.TypeProtoCompact:
		return formatOther
	default:
		return ""
	}
}

// Write writes the exporter's families to w as one whole page: a page of
// OpenMetrics ends as it must. Text 0.0.4, OpenMetrics 1.0 and delimited protobuf
// are rendered without an allocation per series; other formats that expfmt knows
// take the slow way. An unknown format is an error, as is what w returns.
func (x *Exporter) Write(w io.Writer, f expfmt.Format) error {
	sc := x.acquire()
	defer x.release(sc)
	if err := x.render(sc, f); err != nil {
		return err
	}
	end(sc, f)
	x.pageBytes.Store(int64(len(sc.page)))
	if _, err := w.Write(sc.page); err != nil {
		return fmt.Errorf("writing metrics page: %w", err)
	}
	return nil
}

// render appends the exporter's families to the page.
func (x *Exporter) render(sc *scrape, f expfmt.Format) error {
	name := formatOf(f)
	switch name {
	case "":
		return fmt.Errorf("metrics format %q is not known", f)
	case formatOther:
		for _, mf := range x.gather() {
			if err := sc.encode(mf, f); err != nil {
				return err
			}
		}
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.snapshot(sc)
	sc.expect(x.pageBytes.Load())
	if name == formatProtobuf {
		x.writeProto(sc)
	} else {
		x.writeText(sc, name == formatOpenMetrics)
	}
	return nil
}

// encode appends one family of client_golang's to the page; on an error nothing
// of it.
func (sc *scrape) encode(mf *dto.MetricFamily, f expfmt.Format) error {
	buf := bytes.NewBuffer(sc.page)
	enc := expfmt.NewEncoder(buf, f, expfmt.WithCreatedLines())
	if err := enc.Encode(mf); err != nil {
		return fmt.Errorf("encoding metric family %s: %w", mf.GetName(), err)
	}
	sc.page = buf.Bytes()
	return nil
}

// end appends what a page of the format ends with.
func end(sc *scrape, f expfmt.Format) {
	if f.FormatType() == expfmt.TypeOpenMetrics {
		sc.page = append(sc.page, "# EOF\n"...)
	}
}
