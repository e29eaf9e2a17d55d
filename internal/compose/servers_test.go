package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// lookPath finds a program of Prometheus or Alertmanager. Without it the test is
// skipped, unless STATEGAUGE_REQUIRE_REAL asks for the real thing.
func lookPath(t *testing.T, name string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	if err == nil {
		return p
	}
	if os.Getenv("STATEGAUGE_REQUIRE_REAL") != "" {
		t.Fatalf("%s is required: %v", name, err)
	}
	t.Skipf("%s is not installed", name)
	return ""
}

// run returns what the program writes to its standard output.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// newerKeys are settings of the scrape that promtool knows from Prometheus 3 on;
// Debian 12 has 2.42.
var newerKeys = regexp.MustCompile(`(?m)^ *(scrape_native_histograms|always_scrape_classic_histograms): .*\n`)

func TestPrometheusConfigIsValid(t *testing.T) {
	promtool := lookPath(t, "promtool")
	dir := t.TempDir()
	config := readFile(t, "configs", "prometheus", "prometheus.yml")
	if strings.HasPrefix(run(t, promtool, "--version"), "promtool, version 2.") {
		config = newerKeys.ReplaceAllString(config, "")
	}
	for name, text := range map[string]string{
		"prometheus.yml": config, "stategauge.rules.yml": readFile(t, "configs", "prometheus", "stategauge.rules.yml"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, promtool, "check", "config", filepath.Join(dir, "prometheus.yml"))
}

func TestAlertmanagerConfigIsValid(t *testing.T) {
	amtool := lookPath(t, "amtool")
	run(t, amtool, "check-config", filepath.Join(root, "configs", "alertmanager", "alertmanager.yml"))
}

func TestEverySeverityHasItsRoute(t *testing.T) {
	amtool := lookPath(t, "amtool")
	config := filepath.Join(root, "configs", "alertmanager", "alertmanager.yml")
	for severity, want := range map[string]string{"page": "page", "ticket": "ticket", "info": "info"} {
		got := strings.TrimSpace(run(t, amtool, "config", "routes", "test", "--config.file="+config, "severity="+severity))
		if got != want {
			t.Errorf("severity %s goes to %q", severity, got)
		}
	}
}

func TestRulesAboutTheDaemonAskForSeriesThatExist(t *testing.T) {
	checkSeries(t, "stategauge.rules.yml", readFile(t, "configs", "prometheus", "stategauge.rules.yml"), documentedSeries(t))
}

type scrapeFile struct {
	RuleFiles []string `yaml:"rule_files"`
	Alerting  struct {
		Alertmanagers []target `yaml:"alertmanagers"`
	}
	ScrapeConfigs []struct {
		target           `yaml:",inline"`
		JobName          string `yaml:"job_name"`
		NativeHistograms bool   `yaml:"scrape_native_histograms"`
		Classic          bool   `yaml:"always_scrape_classic_histograms"`
	} `yaml:"scrape_configs"`
}

type target struct {
	StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
}

func (t target) hosts() (out []string) {
	for _, s := range t.StaticConfigs {
		out = append(out, s.Targets...)
	}
	return out
}

func TestPrometheusScrapesAndPagesTheServicesOfTheComposeFile(t *testing.T) {
	var f scrapeFile
	if err := yaml.Unmarshal([]byte(readFile(t, "configs", "prometheus", "prometheus.yml")), &f); err != nil {
		t.Fatal(err)
	}
	services := loadProject(t).Services
	var hosts []string
	for _, s := range f.ScrapeConfigs {
		hosts = append(hosts, s.hosts()...)
		if s.JobName == "stategauge" && !(s.NativeHistograms && s.Classic) {
			t.Error("native histograms, or the classic ones beside them, are not scraped")
		}
	}
	for _, a := range f.Alerting.Alertmanagers {
		hosts = append(hosts, a.hosts()...)
	}
	if len(hosts) < 3 {
		t.Fatalf("hosts %v", hosts)
	}
	for _, h := range hosts {
		name, _, _ := strings.Cut(h, ":")
		if _, ok := services[name]; !ok && name != "localhost" {
			t.Errorf("%s is no service of the compose file", h)
		}
	}
	for _, r := range f.RuleFiles {
		if _, err := os.Stat(filepath.Join(root, "configs", "prometheus", r)); err != nil {
			t.Error(err)
		}
	}
}

func TestGrafanaFindsItsDashboardsAndItsDataSource(t *testing.T) {
	var providers struct {
		Providers []struct{ Options struct{ Path string } }
	}
	var sources struct {
		Datasources []struct{ UID, Type, URL string }
	}
	parse := func(out any, path ...string) {
		if err := yaml.Unmarshal([]byte(readFile(t, append([]string{"configs", "grafana", "provisioning"}, path...)...)), out); err != nil {
			t.Fatal(err)
		}
	}
	parse(&providers, "dashboards", "stategauge.yml")
	parse(&sources, "datasources", "prometheus.yml")
	grafana := loadProject(t).Services["grafana"]
	mounted := map[string]bool{}
	for _, v := range grafana.Volumes {
		mounted[v.Target] = true
	}
	if len(providers.Providers) != 1 || !mounted[providers.Providers[0].Options.Path] {
		t.Errorf("dashboards are looked for in %v, mounted are %v", providers.Providers, mounted)
	}
	if len(sources.Datasources) != 1 || sources.Datasources[0].UID != "prometheus" || sources.Datasources[0].URL != "http://prometheus:9090" {
		t.Errorf("data sources %+v", sources.Datasources)
	}
	home := *grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	if _, ok := dashboards(t)[filepath.Base(home)]; !ok {
		t.Errorf("home dashboard %s does not exist", home)
	}
}
