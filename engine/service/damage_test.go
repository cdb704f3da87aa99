// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"archive/zip"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/damage"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

var (
	damagedRuns = flag.Int("damaged", 0, "how many damaged files a server reads; 0: 300, 40 with -short, or 20,000 with UNWINDD_PROOF=1")
	damagedSeed = flag.Uint64("damaged-seed", 1, "of the damage")
	damagedDir  = flag.String("damaged-dir", "", "keep the files of requests that fail in this folder")
)

// A damagedRequest is what a server is asked about a damaged file.
type damagedRequest struct {
	name  string // of the file
	parts []zipMember
	paths []string
	// buildID is what the file says of itself, and is replaced by another one for each request:
	// the server would read the file once alone.
	buildID []byte
}

// A zipMember is a file, or the member of a snapshot. Of a snapshot one member is damaged, or the
// whole of it.
type zipMember struct {
	name    string
	content []byte
}

var (
	targetPaths = []string{
		"/v1/stack", "/v1/stack?format=text&lanes&registers&locals&no-fold", "/v1/stack?locals&raw&depth=9&code=5&source=5&goroutines", "/v1/stack?format=html&locals",
		"/v1/stack?format=breakpad", "/v1/stack?signature", "/v1/snapshot", "/v1/snapshot?files",
		"/v1/eval?arch=x86_64&frame=1&trace&expr=call_frame_cfa%3Bderef", "/v1/eval?frame=0&var=batch", "/v1/eval?arch=amdgpu&lane=3&expr=regx+v1&read=32",
	}
	profilePaths = []string{"/v1/profile", "/v1/profile?format=text&annotate=count_by_sort", "/v1/profile?format=pprof", "/v1/profile?format=folded&max-stack=20", "/v1/profile?format=html"}
	objectPaths  = []string{"/v1/objects/"}
)

// damagedRequests are real files of each form that strangers send.
func damagedRequests(t *testing.T) (list []damagedRequest) {
	t.Helper()
	add := func(pattern string, paths ...string) {
		found, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		for _, path := range found {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r := damagedRequest{name: path, parts: []zipMember{{"", b}}, paths: paths}
			if paths[0] == objectPaths[0] {
				if r.buildID = noteID(b); r.buildID == nil {
					continue // it cannot be put
				}
			}
			list = append(list, r)
			if strings.HasSuffix(path, ".snapshot") {
				list = append(list, damagedRequest{name: path + " inside", parts: membersOf(t, b), paths: paths})
			}
		}
	}
	add("examples/crash/server.core", targetPaths...)
	add("examples/crash/server.dmp", targetPaths...)
	add("engine/internal/target/minidump/testdata/*.dmp", targetPaths...)
	add("engine/internal/target/elfcore/testdata/machines/*.core.bz2", targetPaths...)
	add("examples/*/*.snapshot", targetPaths...)
	if !testing.Short() { // their depth takes the race detector a minute on a busy machine
		add("engine/testdata/bounds/*.snapshot", targetPaths[:2]...)
	}
	add("examples/rocm-core/crash.core", targetPaths...)
	add("examples/cuda-core/crash.core", targetPaths...)
	add("examples/profile/perf.data", profilePaths...)
	add("examples/gpu-profile/cpu.data", profilePaths...)
	add("examples/crash/server", objectPaths...)
	add("examples/profile/words", objectPaths...)
	add("examples/gpu-profile/host", objectPaths...)
	list = append(list, sourceModules(t)...)
	return list
}

// sourceModules are snapshots whose code objects were made from SPIR-V, or from LLVM IR.
func sourceModules(t *testing.T) (list []damagedRequest) {
	t.Helper()
	whole, err := os.ReadFile("../../examples/gen/gen.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"../internal/symbol/spirv/testdata/*.spv", "../internal/symbol/llvmir/testdata/*.ll"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		for _, path := range found {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			members := membersOf(t, whole)
			for i := range members {
				members[i].content = bytes.Replace(members[i].content, []byte(`"file":"modules/1.elf"`), []byte(`"file":"modules/1.elf","source_module":"source"`), 1)
			}
			r := damagedRequest{name: path, parts: append([]zipMember{{"source", b}}, members...), paths: targetPaths[:3]}
			list = append(list, r)
		}
	}
	return list
}

// noteID is the build ID of an ELF file's note; nil: none is found.
func noteID(b []byte) []byte {
	head := []byte("\x04\x00\x00\x00\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00")
	if note := bytes.Index(b, head); note >= 0 && note+len(head)+20 <= len(b) {
		return b[note+len(head):][:20]
	}
	return nil
}

func membersOf(t *testing.T, snapshot []byte) (members []zipMember) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(snapshot), int64(len(snapshot)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, zipMember{f.Name, b})
	}
	return members
}

// zipped is a snapshot of members.
func zipped(t *testing.T, members []zipMember) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, m := range members {
		w, err := z.Create(m.name)
		if err == nil {
			_, err = w.Write(m.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// body is the damaged file.
func (r *damagedRequest) body(t *testing.T, random *rand.Rand) (body, buildID []byte) {
	t.Helper()
	parts := slices.Clone(r.parts)
	which := &parts[random.IntN(len(parts))]
	if parts[0].name == "source" {
		which = &parts[0]
	}
	if r.buildID != nil {
		buildID = make([]byte, len(r.buildID))
		for i := range buildID {
			buildID[i] = byte(random.Uint32())
		}
		which.content = bytes.ReplaceAll(which.content, r.buildID, buildID)
	}
	which.content = damage.Of(random, which.content)
	if which.name == "" {
		return which.content, buildID
	}
	return zipped(t, parts), buildID
}

// A damagedOutcome is how a request ended; problem is "" where that is how one may end.
type damagedOutcome struct {
	how, problem string
	took         time.Duration
}

// TestServeOutlivesDamagedFiles has a server read damaged files: each costs its own request. No
// process dies by one, every answer has a meaning, and a good request between them is answered as
// ever.
func TestServeOutlivesDamagedFiles(t *testing.T) {
	oracle.All(t)
	runs := *damagedRuns
	if runs == 0 {
		runs = 300
		if testing.Short() {
			runs = 40
		}
		if proof.IsRequested() {
			runs = 20000
		}
	}
	o := testOptions(t)
	o.Workers, o.Time, o.Memory, o.Unpack, o.Answer = 2, patience, 2<<30, 1<<30, 256<<20
	s := start(t, o)
	s.putCrash(t)
	want := s.post(t, "/v1/stack?format=text", file(t, crashCore))
	requests := damagedRequests(t)
	numbers := make(chan int)
	var mu sync.Mutex
	ended, slowest := map[string]int{}, damagedOutcome{}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for n := range numbers {
				random := rand.New(rand.NewPCG(*damagedSeed, uint64(n)))
				r := &requests[random.IntN(len(requests))]
				o := s.readDamaged(t, r, random, n)
				mu.Lock()
				if ended[o.how]++; o.took > slowest.took {
					slowest = o
				}
				mu.Unlock()
				if o.problem != "" {
					t.Errorf("file %d of seed %d, of %s: %s", n, *damagedSeed, r.name, o.problem)
				}
			}
		})
	}
	for n := range runs {
		if numbers <- n; n%100 == 99 {
			if got := s.post(t, "/v1/stack?format=text", file(t, crashCore)); got != want {
				t.Errorf("after %d damaged files:\n%s\nexpected\n%s", n+1, got, want)
			}
		}
	}
	close(numbers)
	both.Wait()
	t.Logf("%d files of %d: %v; slowest: %v, %s", runs, len(requests), ended, slowest.took, slowest.how)
	if said := s.log.String(); strings.Contains(said, "worker died") || strings.Contains(said, "goroutine ") {
		t.Error("a worker died")
	}
	s.mustBeClean(t)
}

// readDamaged has a server read one damaged file.
func (s *testServer) readDamaged(t *testing.T, r *damagedRequest, random *rand.Rand, n int) (o damagedOutcome) {
	t.Helper()
	path := r.paths[random.IntN(len(r.paths))]
	body, buildID := r.body(t, random)
	method, began := http.MethodPost, time.Now()
	if buildID != nil {
		method, path = http.MethodPut, path+hex.EncodeToString(buildID)
	}
	o.how, o.problem = s.askDamaged(method, path, body)
	if buildID != nil && o.problem == "" && strings.HasPrefix(o.how, "201") {
		how, problem := s.askDamaged(http.MethodPost, "/v1/symbolize?build-id="+hex.EncodeToString(buildID), []byte(`{"addresses":["0x401100","0x401911","0x1234","0x402ab3","0x10b5"]}`))
		o.how, o.problem = o.how+", symbolized "+how, problem
	}
	o.took = time.Since(began)
	if o.problem != "" {
		o.problem = fmt.Sprintf("%s %s: %s", method, path, o.problem)
		if *damagedDir != "" {
			_ = os.WriteFile(filepath.Join(*damagedDir, fmt.Sprintf("%d-%d", *damagedSeed, n)), body, 0o600)
		}
	}
	return o
}

// damagedKinds are how requests of damaged files may end, beside well.
var damagedKinds = []string{"usage", "not-found", "mismatch", "unreadable", "long-answer"}

// askDamaged makes a request. problem tells what is wrong with its answer.
func (s *testServer) askDamaged(method, path string, body []byte) (how, problem string) {
	how, problem, _ = s.askWhatIsDamaged(method, path, body)
	return how, problem
}

// askWhatIsDamaged is askDamaged with the answer.
func (s *testServer) askWhatIsDamaged(method, path string, body []byte) (how, problem, answer string) {
	r, err := http.NewRequest(method, s.url+path, bytes.NewReader(body)) //nolint:noctx // the test has a limit
	if err != nil {
		return "none", err.Error(), ""
	}
	a, err := s.client.Do(r)
	if err != nil {
		return "none", err.Error(), ""
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	how = a.Status[:3]
	switch {
	case err != nil: // the report breaks off
		return how + " broken", fmt.Sprintf("%v after %d bytes", err, len(text)), string(text)
	case bytes.Contains(text, []byte(filepath.Dir(s.State))):
		return how, fmt.Sprintf("a folder of the server is in the answer: %.1000q", around(text, filepath.Dir(s.State))), string(text)
	case a.StatusCode < http.StatusBadRequest:
		return how, "", string(text)
	}
	var said struct{ Type, Detail string }
	if err := json.Unmarshal(text, &said); err != nil {
		return how, fmt.Sprintf("%.500q is no problem: %v", text, err), string(text)
	}
	kind := filepath.Base(said.Type)
	if !slices.Contains(damagedKinds, kind) || said.Detail == "" {
		return how + " " + kind, fmt.Sprintf("%.1000s", text), string(text)
	}
	return how + " " + kind, "", string(text)
}

// around is the text before and behind the place of another one in it.
func around(text []byte, what string) []byte {
	found := bytes.Index(text, []byte(what))
	return text[max(0, found-200):min(len(text), found+200)]
}

// mustBeClean fails where a server that has nothing to do has files of requests.
func (s *testServer) mustBeClean(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{s.State + "/spool/*", s.State + "/objects/part-*", s.Run + "/s-*/w/*/*"} {
		until(t, pattern+" is gone", func() bool {
			found, _ := filepath.Glob(pattern)
			return len(slices.DeleteFunc(found, isPluginSocket)) == 0
		})
	}
}

// isPluginSocket reports whether a file of a worker's folder is a socket of its plugins, which stay.
func isPluginSocket(path string) bool {
	info, err := os.Lstat(path)
	return err != nil || info.IsDir() || info.Mode()&os.ModeSocket != 0
}
