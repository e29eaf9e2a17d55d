package scenario

import "testing"

func TestTry(t *testing.T) {
	sc, err := Load("x/steady.yml", []byte("description: hi\nexpect:\n  symptom: stalled\n  cause: x\nfaults:\n- kind: stor-slow\n- {kind: store-slow, from_batch: 400, size: 1, bytes: 4}\nspark_version: 3.6\nquery: {sources: [{rows_per_second: 0}], operators: [{kind: session_window}]}\ncluster: {noise: {kind: lognorm}}\n"))
	t.Logf("%+v\n%v", sc, err)
	sc, err = Load("x/steady.yml", []byte("description: hi\nexpect:\n  - symptom: stalled\n"))
	t.Logf("%+v\n%v", sc, err)
}
