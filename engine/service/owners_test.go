// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"context"
	"encoding/hex"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/fleet/queueserver"
	"github.com/unwindd/unwindd/engine/service/internal/objects"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// This file has callers who put files of a build ID that are not that build.

// forgedExe is the executable of the crash with another function's name, and the same build ID.
func forgedExe(t *testing.T) []byte {
	t.Helper()
	forged := bytes.ReplaceAll(file(t, crashExe), []byte("read_body"), []byte("evil_body"))
	if bytes.Equal(forged, file(t, crashExe)) {
		t.Fatal("nothing is forged")
	}
	return forged
}

// aliceAndMallory returns the headers of alice and mallory.
func aliceAndMallory(t *testing.T, o *Options) (alice, mallory []string) {
	t.Helper()
	var err error
	if o.Tokens, err = ReadTokens(strings.NewReader("alice 0123456789abcdef\nmallory fedcba9876543210\n")); err != nil {
		t.Fatal(err)
	}
	return []string{"Authorization", "Bearer 0123456789abcdef"}, []string{"Authorization", "Bearer fedcba9876543210"}
}

// wantStatus asks, and expects a status.
func (s *testServer) wantStatus(t *testing.T, want int, method, path string, body []byte, headers []string) string {
	t.Helper()
	answer, text := s.ask(t, method, path, bytes.NewReader(body), headers...)
	if answer.StatusCode != want {
		t.Fatalf("%s %s: %s, expected %d: %s", method, path, answer.Status, want, text)
	}
	return text
}

// TestAForgedObjectIsItsOwnersAlone has mallory put a file with the build ID of alice's program
// before her.
func TestAForgedObjectIsItsOwnersAlone(t *testing.T) {
	o := testOptions(t)
	alice, mallory := aliceAndMallory(t, &o)
	s := start(t, o)
	path := "/v1/objects/" + crashID
	stack := func(caller []string, word string) {
		t.Helper()
		text := s.wantStatus(t, http.StatusOK, "POST", "/v1/stack?format=text&crashed", file(t, crashCore), caller)
		for _, one := range []string{"read_body", "evil_body"} {
			if strings.Contains(text, one) != (one == word) {
				t.Errorf("expected %q:\n%s", word, text)
			}
		}
	}
	symbolize := func(caller []string, word string) {
		t.Helper()
		status := http.StatusOK
		if word == "" {
			status = http.StatusNotFound
		}
		text := s.wantStatus(t, status, "POST", "/v1/symbolize?build-id="+crashID, []byte(`{"addresses":["0x401100"]}`), caller)
		if word != "" && !strings.Contains(text, word) {
			t.Errorf("expected %q: %s", word, text)
		}
	}
	both := func(caller []string, word string) {
		t.Helper()
		stack(caller, word)
		symbolize(caller, word)
	}
	both(alice, "") // which a worker may remember
	s.wantStatus(t, http.StatusCreated, "PUT", path, forgedExe(t), mallory)
	both(alice, "evil_body")
	s.wantStatus(t, http.StatusNotFound, "DELETE", path, nil, alice)
	s.wantStatus(t, http.StatusCreated, "PUT", path, file(t, crashExe), alice)
	s.wantStatus(t, http.StatusNoContent, "PUT", path, file(t, crashExe), alice)
	both(alice, "read_body")
	both(mallory, "evil_body")
	s.wantStatus(t, http.StatusNoContent, "DELETE", path, nil, mallory)
	both(mallory, "read_body")
	s.wantStatus(t, http.StatusNoContent, "DELETE", path, nil, alice)
	both(alice, "")
	s.wantStatus(t, http.StatusNotFound, "DELETE", path, nil, alice)
	s.wantStatus(t, http.StatusBadRequest, "DELETE", "/v1/objects/zz", nil, alice)
	s.wantStatus(t, http.StatusUnauthorized, "DELETE", path, nil, nil)
}

// TestObjectsAreDeletedByGRPC has callers by gRPC, one of whom has put a file.
func TestObjectsAreDeletedByGRPC(t *testing.T) {
	o := testOptions(t)
	alice, _ := aliceAndMallory(t, &o)
	s := start(t, o)
	path := "/v1/objects/" + crashID
	s.wantStatus(t, http.StatusCreated, "PUT", path, file(t, crashExe), alice)
	id, err := hex.DecodeString(crashID)
	if err != nil {
		t.Fatal(err)
	}
	client := pb.NewUnwinddClient(s.dial(t))
	remove := func(token string, id []byte, want codes.Code) {
		t.Helper()
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
		if _, err := client.DeleteObject(ctx, &pb.DeleteObjectRequest{BuildId: id}); status.Code(err) != want {
			t.Errorf("%v, expected %v", err, want)
		}
	}
	remove("fedcba9876543210", id, codes.NotFound)
	remove("0123456789abcdef", id[:1], codes.InvalidArgument)
	remove("wrong", id, codes.Unauthenticated)
	remove("0123456789abcdef", id, codes.OK)
	s.wantStatus(t, http.StatusNotFound, "GET", path, nil, alice)
}

// TestAnOperatorRemovesWhatAnybodyPut asks by a Unix socket, as the server's own user.
func TestAnOperatorRemovesWhatAnybodyPut(t *testing.T) {
	o := testOptions(t)
	alice, _ := aliceAndMallory(t, &o)
	s := start(t, o)
	path := "/v1/objects/" + crashID
	s.wantStatus(t, http.StatusCreated, "PUT", path, file(t, crashExe), alice)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l, nil) }()
	own := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://localhost"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer fedcba9876543210")
	answer, err := own.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		t.Error(answer.Status)
	}
	s.wantStatus(t, http.StatusNotFound, "GET", path, nil, alice)
}

// TestAChangedObjectIsDropped has the file of an object changed on the server's disk.
func TestAChangedObjectIsDropped(t *testing.T) {
	s := start(t, testOptions(t))
	s.putCrash(t)
	id, err := hex.DecodeString(crashID)
	if err != nil {
		t.Fatal(err)
	}
	// It is the file with the debug information, too.
	if err := os.WriteFile(s.store.Of("127.0.0.1").Find(id, objects.Executable), file(t, mixed), 0o600); err != nil { //nolint:gosec // of a test
		t.Fatal(err)
	}
	if text := s.post(t, "/v1/stack?format=text&crashed", file(t, crashCore)); strings.Contains(text, "read_body") {
		t.Error(text)
	}
	s.putCrash(t)
	if text := s.post(t, "/v1/stack?format=text&crashed", file(t, crashCore)); !strings.Contains(text, "read_body") {
		t.Error(text)
	}
}

// TestAWorkerOfAFleetKeepsWhatItHasIdentified has files in the queue that are not what they are
// called. The right one replaces it.
func TestAWorkerOfAFleetKeepsWhatItHasIdentified(t *testing.T) {
	f := startFleet(t)
	o := testOptions(t)
	o.Workers = 1
	s := f.work(t, o)
	id, err := hex.DecodeString(crashID)
	if err != nil {
		t.Fatal(err)
	}
	stack := func() string { t.Helper(); return stackOf(t, f.Queue) }
	for name, wrong := range map[string][]byte{"no ELF file": []byte("localhost\n"), "another program": file(t, examples+"profile/words"), "nothing": nil} {
		for _, kind := range []string{objects.Executable, objects.DebugInfo} {
			if _, err := f.PutObject(t.Context(), id, kind, bytes.NewReader(wrong)); err != nil {
				t.Fatal(err)
			}
		}
		if text := stack(); strings.Contains(text, "read_body") || !strings.Contains(text, "0x0000000000401100") {
			t.Errorf("%s:\n%s", name, text)
		}
		if kept, _ := filepath.Glob(filepath.Join(s.State, "..", "*", crashID[:2], "*", "*", "*")); len(kept) > 0 {
			t.Errorf("%s is kept: %q", name, kept)
		}
	}
	if sent, err := f.PutObject(t.Context(), id, objects.Executable, bytes.NewReader(file(t, crashExe))); err != nil || !sent {
		t.Fatalf("%t, %v", sent, err)
	}
	if text := stack(); !strings.Contains(text, "read_body") {
		t.Errorf("the right one is not used:\n%s", text)
	}
	if _, err := f.PutObject(t.Context(), id, objects.Executable, bytes.NewReader(forgedExe(t))); err != nil {
		t.Fatal(err)
	}
	if text := stack(); !strings.Contains(text, "evil_body") {
		t.Errorf("the one that replaced it is not used:\n%s", text)
	}
	if err := f.DropObject(t.Context(), id, objects.Executable); err != nil {
		t.Fatal(err)
	}
	if text := stack(); strings.Contains(text, "_body") {
		t.Errorf("one that was removed is used:\n%s", text)
	}
}

// TestWhoHasAnotherFileIsNotHandedOver has mallory put a forged file first, and alice the right one:
// the fleet has one file of a build ID.
func TestWhoHasAnotherFileIsNotHandedOver(t *testing.T) {
	f := startFleet(t)
	f.work(t, testOptions(t))
	var alice, mallory []string
	s, free := startBusy(t, f, func(o *Options) { alice, mallory = aliceAndMallory(t, o) })
	free()
	path := "/v1/objects/" + crashID
	s.wantStatus(t, http.StatusCreated, "PUT", path, forgedExe(t), mallory)
	s.wantStatus(t, http.StatusCreated, "PUT", path, file(t, crashExe), alice)
	free = s.fill(t)
	s.wantStatus(t, http.StatusTooManyRequests, "POST", "/v1/stack?format=text&crashed", file(t, crashCore), alice)
	free()
	s.wantStatus(t, http.StatusNoContent, "DELETE", path, nil, mallory)
	free = s.fill(t)
	if text := s.wantStatus(t, http.StatusOK, "POST", "/v1/stack?format=text&crashed", file(t, crashCore), alice); !strings.Contains(text, "read_body") {
		t.Error(text)
	}
	free()
}

// TestAUsersFilesAreForHisJobs has users of a queue's server put files of one build ID: each job has
// its own user's, or else the account's.
func TestAUsersFilesAreForHisJobs(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "queue.conf")
	user := func(name string) string {
		return strings.ReplaceAll(`{ user: NAME, password: p, permissions: { publish: ["unwindd.ask.v1.NAME.*"], subscribe: ["_INBOX_NAME.>", "unwindd.user.NAME.done.v1.*"] } }`, "NAME", name)
	}
	text := `listen: "127.0.0.1:-1", accounts { UNWINDD: { jetstream: enabled, users: [ { user: worker, password: p }, ` + user("alice") + ", " + user("bob") + ` ] } }`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := queueserver.Start(fleet.ServerOptions{Dir: dir, Config: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	connect := func(name string) *fleet.Queue {
		t.Helper()
		q, err := fleet.Connect(t.Context(), fleet.Options{URL: "nats://" + name + ":p@" + server.Address(), Keep: fleet.Keep{Bytes: 64 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(q.Close)
		return q
	}
	f := &testFleet{Queue: connect("worker")}
	o := testOptions(t)
	o.Workers = 1
	f.work(t, o)
	id, err := hex.DecodeString(crashID)
	if err != nil {
		t.Fatal(err)
	}
	alice, bob := connect("alice"), connect("bob")
	want := func(q *fleet.Queue, word string) {
		t.Helper()
		text := stackOf(t, q)
		for _, one := range []string{"read_body", "evil_body"} {
			if strings.Contains(text, one) != (one == word) {
				t.Errorf("expected %q:\n%s", word, text)
			}
		}
	}
	put := func(q *fleet.Queue, exe []byte) {
		t.Helper()
		if sent, err := q.PutObject(t.Context(), id, objects.Executable, bytes.NewReader(exe)); err != nil || !sent {
			t.Fatalf("%t, %v", sent, err)
		}
	}
	want(alice, "")
	put(bob, forgedExe(t))
	want(bob, "evil_body")
	want(alice, "")
	put(f.Queue, forgedExe(t))
	want(alice, "evil_body")
	put(alice, file(t, crashExe))
	want(alice, "read_body")
	if err := bob.DropObject(t.Context(), id, objects.Executable); err != nil {
		t.Fatal(err)
	}
	want(alice, "read_body")
	want(bob, "evil_body")
	if err := f.DropObject(t.Context(), id, objects.Executable); err != nil {
		t.Fatal(err)
	}
	want(bob, "")
	want(alice, "read_body")
}

// stackOf has the crash walked by a fleet, and returns the report.
func stackOf(t *testing.T, q *fleet.Queue) string {
	t.Helper()
	task, err := fleet.NewTask("stack", &pb.StackOptions{Format: "text", Crashed: true, Name: "core"})
	if err != nil {
		t.Fatal(err)
	}
	job, err := q.Submit(t.Context(), task, bytes.NewReader(file(t, crashCore)), fleet.How{Again: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var text strings.Builder
	if err := q.Wait(ctx, []string{job.ID}, func(r *fleet.Result) error { return q.Report(ctx, r, &text) }); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// wrongServer is a Remote that keeps the file of another build at first.
type wrongServer struct {
	t        *testing.T
	path     string
	fetched  int
	contents [][]byte
}

// Fetch implements object.Remote.
func (w *wrongServer) Fetch(f object.RemoteFile) (string, []object.Attempt) {
	if hex.EncodeToString(f.BuildID) != crashID || f.Kind != object.RemoteExecutable {
		return "", nil
	}
	if _, err := os.Stat(w.path); err != nil { // as the cache of a client of debuginfod
		if err := os.WriteFile(w.path, w.contents[min(w.fetched, len(w.contents)-1)], 0o600); err != nil {
			w.t.Error(err)
		}
		w.fetched++
	}
	return w.path, nil
}

// TestAWrongFileOfAServerIsFetchedAnew has a server of files that gives another build's file, and
// later the right one.
func TestAWrongFileOfAServerIsFetchedAnew(t *testing.T) {
	o := testOptions(t)
	w := &wrongServer{t: t, path: filepath.Join(t.TempDir(), "cached"), contents: [][]byte{file(t, examples+"profile/words"), []byte("<html>"), file(t, crashExe)}}
	o.Remote = w
	s := start(t, o)
	for i, want := range []bool{false, false, true, true} {
		if text := s.post(t, "/v1/stack?format=text&crashed", file(t, crashCore)); strings.Contains(text, "read_body") != want {
			t.Errorf("request %d: expected names: %t\n%s", i, want, text)
		}
	}
	if w.fetched != 3 {
		t.Errorf("it was fetched %d times", w.fetched)
	}
}
