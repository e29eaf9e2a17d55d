package compose

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"
)

// root is the folder of the repository.
var root = filepath.Join("..", "..")

func loadProject(t *testing.T) *types.Project {
	t.Helper()
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	options, err := cli.NewProjectOptions(
		[]string{filepath.Join(dir, "docker-compose.yml")},
		cli.WithWorkingDirectory(dir), cli.WithoutEnvironmentResolution,
	)
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestComposeFileStartsEverythingThatDashboardsAndPagesNeed(t *testing.T) {
	want := []string{"alertmanager", "grafana", "kafka", "prometheus", "simulator", "stategauge", "topic"}
	if diff := cmp.Diff(want, loadProject(t).ServiceNames()); diff != "" {
		t.Errorf("services (-want +got)\n%s", diff)
	}
}

var pinned = regexp.MustCompile(`^[a-z/]+:v?\d+\.\d+(\.\d+)?$`)

func TestImagesArePinned(t *testing.T) {
	for name, s := range loadProject(t).Services {
		if s.Build == nil && !pinned.MatchString(s.Image) {
			t.Errorf("%s: image %q is not pinned to a version", name, s.Image)
		}
	}
	for _, line := range dockerfile(t) {
		image, ok := strings.CutPrefix(line, "FROM ")
		image, _, _ = strings.Cut(image, " ")
		if ok && !regexp.MustCompile(`^[a-z]+:\d+\.\d+(-[a-z]+)?$`).MatchString(image) {
			t.Errorf("Dockerfile: image %q is not pinned to a version", image)
		}
	}
}

func TestMountedFilesExist(t *testing.T) {
	dir, _ := filepath.Abs(root)
	mounts := 0
	for name, s := range loadProject(t).Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			mounts++
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !strings.HasPrefix(v.Source, dir+string(filepath.Separator)) || !v.ReadOnly {
				t.Errorf("%s: %s must lie in the repository and be read only", name, v.Source)
			}
		}
	}
	if mounts == 0 {
		t.Error("no file is mounted: is the configuration used at all?")
	}
}

func TestPathsOnCommandLinesAreMounted(t *testing.T) {
	for name, s := range loadProject(t).Services {
		for _, arg := range s.Command {
			flag, file, ok := strings.Cut(arg, "=")
			if !ok || !strings.HasSuffix(flag, "config.file") {
				continue
			}
			if !slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return holds(v, file) }) {
				t.Errorf("%s: %s is in no mount", name, file)
			}
		}
	}
}

// holds reports whether the container's path file comes from the mount and exists.
func holds(v types.ServiceVolumeConfig, file string) bool {
	rest, ok := strings.CutPrefix(file, v.Target)
	if !ok || v.Type != types.VolumeTypeBind {
		return false
	}
	_, err := os.Stat(filepath.Join(v.Source, filepath.FromSlash(rest)))
	return err == nil
}

func TestPortsAreForThisMachineOnly(t *testing.T) {
	seen := map[string]string{}
	for name, s := range loadProject(t).Services {
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s listens on %q", name, p.Published, p.HostIP)
			}
			if other, ok := seen[p.Published]; ok {
				t.Errorf("%s and %s both want port %s", name, other, p.Published)
			}
			seen[p.Published] = name
		}
	}
	want := map[string]string{"9980": "stategauge", "9090": "prometheus", "9093": "alertmanager", "3000": "grafana", "29092": "kafka"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("published ports (-want +got)\n%s", diff)
	}
}

func TestEveryLastingServiceTellsItsHealth(t *testing.T) {
	for name, s := range loadProject(t).Services {
		if name == "topic" || name == "simulator" {
			continue // run once, and serve nobody
		}
		if s.HealthCheck == nil || len(s.HealthCheck.Test) < 2 {
			t.Errorf("%s has no health check", name)
		}
		if s.Restart != types.RestartPolicyUnlessStopped {
			t.Errorf("%s: restart %q", name, s.Restart)
		}
	}
}

func TestPrometheusKeepsExemplarsAndNativeHistograms(t *testing.T) {
	s := loadProject(t).Services["prometheus"]
	if !slices.Contains(s.Command, "--enable-feature=exemplar-storage,native-histograms") {
		t.Errorf("command %v", s.Command)
	}
}

func TestStategaugeRunsWithoutPrivileges(t *testing.T) {
	s := loadProject(t).Services["stategauge"]
	if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") {
		t.Errorf("read only %v, capabilities dropped %v", s.ReadOnly, s.CapDrop)
	}
	text := strings.Join(dockerfile(t), "\n")
	for _, want := range []string{"USER 65532:65532", "CGO_ENABLED=0 go build", "EXPOSE 9980"} {
		if !strings.Contains(text, want) {
			t.Errorf("Dockerfile lacks %q", want)
		}
	}
}

// The topic that is created must be the one that is read, over an address that
// the broker advertises.
func TestTopicAndBrokerAreTheConfiguredOnes(t *testing.T) {
	config := readFile(t, "configs", "stategauge.yml")
	p := loadProject(t)
	for _, arg := range p.Services["topic"].Command {
		if topic, ok := strings.CutPrefix(arg, "--topic="); ok && !strings.Contains(config, "topics: ["+topic+"]") {
			t.Errorf("configs/stategauge.yml does not read %s", topic)
		}
	}
	advertised := *p.Services["kafka"].Environment["KAFKA_ADVERTISED_LISTENERS"]
	if !strings.Contains(advertised, "PLAINTEXT://kafka:9092") || !strings.Contains(config, "brokers: [kafka:9092]") {
		t.Errorf("the broker advertises %s", advertised)
	}
	if !strings.Contains(config, "url: http://alertmanager:9093") {
		t.Error("configs/stategauge.yml does not send to the Alertmanager of the compose file")
	}
}

// The build's context is an allow list: a folder that the binary needs and that
// is not on it would break the image only.
func TestImageIsBuiltFromEverythingTheBinaryImports(t *testing.T) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./cmd/stategauge")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	allowed := strings.Split(readFile(t, ".dockerignore"), "\n")
	ours := 0
	for line := range strings.Lines(string(out)) {
		dir, ok := strings.CutPrefix(strings.TrimSpace(line), "github.com/stategauge/stategauge/")
		if !ok {
			continue
		}
		ours++
		top, _, _ := strings.Cut(dir, "/")
		if !slices.Contains(allowed, "!"+top) {
			t.Errorf(".dockerignore keeps %s out of the image's build", dir)
		}
	}
	if ours == 0 {
		t.Error("the binary imports nothing of ours")
	}
}

func TestImageIsBuiltWithTheGoOfTheModule(t *testing.T) {
	_, rest, _ := strings.Cut(readFile(t, "go.mod"), "\ngo ")
	version, _, _ := strings.Cut(rest, "\n")
	minor := strings.Join(strings.Split(version, ".")[:2], ".")
	if !strings.Contains(strings.Join(dockerfile(t), "\n"), "FROM golang:"+minor+"-") {
		t.Errorf("go.mod says Go %s, the Dockerfile builds with another", version)
	}
}

func dockerfile(t *testing.T) []string {
	t.Helper()
	return strings.Split(readFile(t, "Dockerfile"), "\n")
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
