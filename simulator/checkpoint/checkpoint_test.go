package checkpoint

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestQueryIDIsReadBack(t *testing.T) {
	for _, root := range []string{"/ckpt", "ckpt", "a/b/c"} {
		mem := vfs.NewMem()
		d, err := Open(mem, root)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := d.QueryID(); ok || err != nil {
			t.Fatalf("new checkpoint has a query id (%v)", err)
		}
		if err := d.SetQueryID("q"); err != nil {
			t.Fatal(err)
		}
		d, err = Open(mem, root)
		if err != nil {
			t.Fatal(err)
		}
		if id, ok, err := d.QueryID(); id != "q" || !ok || err != nil {
			t.Errorf("query id %q, %v, %v", id, ok, err)
		}
	}
}
