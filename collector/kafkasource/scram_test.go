package kafkasource

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go/sasl"
)

// The conversation of RFC 7677, section 3.
const (
	rfcNonce       = "rOprNGfwEbeRWgbNEkqO"
	rfcClientFirst = "n,,n=user,r=" + rfcNonce
	rfcServerNonce = "r=" + rfcNonce + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
	rfcServerFirst = rfcServerNonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
	rfcClientFinal = "c=biws," + rfcServerNonce + ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
	rfcServerFinal = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
)

func rfcTalk(t testing.TB) (sasl.StateMachine, string) {
	t.Helper()
	m := scram{name: "SCRAM-SHA-256", hash: sha256.New, user: "user", password: "pencil", nonce: func() string { return rfcNonce }}
	talk, first, err := m.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return talk, string(first)
}

func TestScramFollowsTheRFC(t *testing.T) {
	talk, first := rfcTalk(t)
	if first != rfcClientFirst {
		t.Errorf("first message is %q", first)
	}
	done, final, err := talk.Next(t.Context(), []byte(rfcServerFirst))
	if err != nil || done || string(final) != rfcClientFinal {
		t.Errorf("second message is %q, done %v, error %v", final, done, err)
	}
	done, _, err = talk.Next(t.Context(), []byte(rfcServerFinal))
	if err != nil || !done {
		t.Errorf("done %v, error %v at the end", done, err)
	}
}

func TestScramRefusesBadServers(t *testing.T) {
	for _, c := range []struct{ name, first, final, want string }{
		{"nonce of another", "r=someoneelse,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "", "nonce does not extend ours"},
		{"nonce not extended", "r=" + rfcNonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "", "nonce does not extend ours"},
		{"salt that is none", rfcServerNonce + ",s=%%,i=4096", "", "salt is not base64"},
		{"no salt", rfcServerNonce + ",i=4096", "", "salt is not base64"},
		{"few iterations", rfcServerNonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1", "", "iteration count"},
		{"endless iterations", rfcServerNonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=2000000000", "", "iteration count"},
		{"iterations that are no number", rfcServerNonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=many", "", "iteration count"},
		{"garbage", "hello", "", "malformed"},
		{"nothing", "", "", "malformed"},
		{"refusal", "e=unknown-user", "", "refused the login: unknown-user"},
		{"wrong proof", rfcServerFirst, "v=AAAA", "does not know the password"},
		{"proof that is none", rfcServerFirst, "v=%%", "does not know the password"},
		{"refusal at the end", rfcServerFirst, "e=invalid-proof", "refused the login: invalid-proof"},
	} {
		t.Run(c.name, func(t *testing.T) {
			talk, _ := rfcTalk(t)
			_, _, err := talk.Next(t.Context(), []byte(c.first))
			if c.final != "" {
				if err != nil {
					t.Fatal(err)
				}
				_, _, err = talk.Next(t.Context(), []byte(c.final))
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, expected %q in it", err, c.want)
			}
		})
	}
}

func FuzzScram(f *testing.F) {
	f.Add(rfcServerFirst, rfcServerFinal)
	f.Add("e=other-error", "")
	f.Add(",,,", "v=")
	f.Fuzz(func(t *testing.T, first, final string) {
		if i := strings.Index(first, "i="); i >= 0 && len(first)-i > 6 {
			return // would only test patience
		}
		talk, _ := rfcTalk(t)
		if _, _, err := talk.Next(t.Context(), []byte(first)); err != nil {
			return
		}
		if done, _, err := talk.Next(t.Context(), []byte(final)); done && err == nil && first == rfcServerFirst && !strings.Contains(final, rfcServerFinal) {
			t.Fatalf("accepted the proof %q", final)
		}
	})
}
