// SPDX-License-Identifier: Apache-2.0

package archpb

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

func TestGeneratedCodeIsWhatTheProtocolSays(t *testing.T) {
	version, err := exec.Command(oracle.Tool(t, "protoc"), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	// Reading them here tells the cache of go test what the result depends on.
	files := map[string]string{}
	for _, name := range []string{"arch.pb.go", "arch_grpc.pb.go", "arch.proto", "runtime.pb.go", "runtime_grpc.pb.go", "runtime.proto", "../../.ci/generate"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	// The generated files name the protoc that made them.
	_, number, _ := strings.Cut(strings.TrimSpace(string(version)), " ")
	if !strings.Contains(files["arch.pb.go"], "v"+number+"\n") && os.Getenv("CI") == "" {
		t.Skipf("protoc %s is not the one that made arch.pb.go", number)
	}
	if out, err := exec.Command("../../.ci/generate", "--check", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
