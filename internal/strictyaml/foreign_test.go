package strictyaml

import (
	"strings"
	"testing"

	"github.com/prometheus/common/config"
)

// client holds a type of another module that decodes itself by the old hook, with
// inline structs, inline maps, pointers and secrets.
type client struct {
	HTTP config.HTTPClientConfig `yaml:"http"`
}

func TestTypesOfOtherModulesDecode(t *testing.T) {
	text := `
http:
  basic_auth: {username: me, password: hidden}
  proxy_url: http://proxy.example:3128
  no_proxy: internal.example
  follow_redirects: false
  tls_config: {ca_file: ca.pem, min_version: TLS12, insecure_skip_verify: true}
  http_headers:
    X-Team: {values: [data]}
    X-Tier: {secrets: [gold, silver]}
`
	var c client
	if err := Decode("c.yaml", []byte(text), &c); err != nil {
		t.Fatal(err)
	}
	h := c.HTTP
	if h.BasicAuth.Username != "me" || h.BasicAuth.Password != "hidden" || h.FollowRedirects || !h.EnableHTTP2 {
		t.Errorf("got %+v", h)
	}
	if h.ProxyURL.Host != "proxy.example:3128" || h.NoProxy != "internal.example" || h.TLSConfig.CAFile != "ca.pem" || !h.TLSConfig.InsecureSkipVerify {
		t.Errorf("got %+v", h)
	}
	if h.TLSConfig.MinVersion == 0 || h.HTTPHeaders.Headers["X-Team"].Values[0] != "data" || len(h.HTTPHeaders.Headers["X-Tier"].Secrets) != 2 {
		t.Errorf("got %+v, %+v", h.TLSConfig, h.HTTPHeaders)
	}
}

func TestFaultsInTypesOfOtherModulesHaveTheirPlace(t *testing.T) {
	text := `http:
  basic_auth: {usernam: me, password: [hidden]}
  tls_config: {min_version: TLS99}
  oauth2: {client_id: x, proxy_ulr: y}
  follow_redirects: maybe
`
	want := []string{
		`c.yaml:2:16: unknown key "usernam", did you mean "username"?`,
		`c.yaml:2:39: want text, got a list`,
		`c.yaml:3:29: unknown TLS version: TLS99`,
		`c.yaml:4:26: unknown key "proxy_ulr", did you mean "proxy_url"?`,
		`c.yaml:5:21: want true or false, got "maybe"`,
	}
	err := Decode("c.yaml", []byte(text), &client{})
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("got\n%v\nwant\n%s", err, strings.Join(want, "\n"))
	}
}

func TestChecksOfOtherModulesSpeakUp(t *testing.T) {
	text := "http:\n  bearer_token: a\n  bearer_token_file: b\n"
	err := Decode("c.yaml", []byte(text), &client{})
	if err == nil || !strings.HasPrefix(err.Error(), "c.yaml:2:3: ") || !strings.Contains(err.Error(), "bearer_token") {
		t.Errorf("got %v", err)
	}
}

func TestSecretsDoNotShowInFaults(t *testing.T) {
	for _, text := range []string{
		"http:\n  basic_auth:\n    username: u\n    password: {hunter2: x}\n",
		"http:\n  basic_auth:\n    password: hunter2\n    passwort: y\n",
		"http:\n  authorization: {credentials: hunter2, type: Basic}\n",
	} {
		err := Decode("c.yaml", []byte(text), &client{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v", err)
		}
	}
}
