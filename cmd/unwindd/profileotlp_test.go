// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/otlpcheck"
)

// export runs `unwindd profile --otlp URL`, and returns the exit status and standard error.
func export(t *testing.T, url string, env ...string) (status int, messages string) {
	t.Helper()
	cmd := command("profile", "--in-process", wordsRecording, "--otlp", url)
	cmd.Env = append(cmd.Env, append([]string{"OTEL_EXPORTER_OTLP_HEADERS=", "OTEL_EXPORTER_OTLP_PROFILES_HEADERS="}, env...)...)
	var out, text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &text
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Errorf("it prints %q", out.String())
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

func TestProfilesAreSentToACollector(t *testing.T) {
	whole, _ := runProfile(t, "--format", "otlp", wordsRecording)
	var got []byte
	var headers http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers = r.Header
		z, err := gzip.NewReader(r.Body)
		if err == nil {
			got, err = io.ReadAll(z)
		}
		if err != nil || r.URL.Path != "/v1development/profiles" {
			t.Errorf("%s: %v", r.URL, err)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer s.Close()
	status, messages := export(t, strings.Replace(s.URL, "//", "//me:secret@", 1), "OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20b", "OTEL_EXPORTER_OTLP_PROFILES_HEADERS=")
	want := "unwindd: sent to " + s.URL + "/v1development/profiles: "
	if status != 0 || !strings.Contains(messages, want) || !strings.Contains(messages, " in 1 requests\n") || strings.Contains(messages, "secret") {
		t.Errorf("exit status %d, expected 0 and %q:\n%s", status, want, messages)
	}
	if string(got) != whole {
		t.Errorf("%d bytes were sent that are not the %d of --format otlp", len(got), len(whole))
	}
	if headers.Get("Api-Key") != "a b" || headers.Get("Authorization") != "Basic bWU6c2VjcmV0" {
		t.Errorf("headers %v", headers)
	}
	if status, messages := export(t, s.URL, "OTEL_EXPORTER_OTLP_HEADERS=secret"); status != exitInput || strings.Contains(messages, "secret") {
		t.Errorf("with bad headers: exit status %d\n%s", status, messages)
	}
	d := &profiles.ProfilesData{}
	if err := proto.Unmarshal(got, d); err != nil {
		t.Fatal(err)
	}
	if wrong := otlpcheck.Check(d); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
}

func TestCollectorsThatDoNotTakeProfiles(t *testing.T) {
	partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 2)
	partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), "too\nold")
	for name, c := range map[string]struct {
		status int
		body   []byte
		want   string
	}{
		"failing":  {500, nil, ": 500 Internal Server Error\n"},
		"rejected": {200, protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial), `: too\nold`},
		"count":    {200, protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial), ": it rejected 2 profiles of 1 requests\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/x-protobuf")
				w.WriteHeader(c.status)
				_, _ = w.Write(c.body)
			}))
			defer s.Close()
			status, messages := export(t, s.URL)
			if want := "unwindd: collector " + s.URL + "/v1development/profiles" + c.want; status != exitInput || !strings.Contains(messages, want) {
				t.Errorf("exit status %d, expected %d and %q:\n%s", status, exitInput, want, messages)
			}
		})
	}
}

func TestFlagsOfCollectorsAreChecked(t *testing.T) {
	for _, args := range [][]string{
		{"--otlp", "collector:4317"},
		{"--otlp", "http://me:sec/ret@host"},
		{"--otlp", "grpc://host", "-o", filepath.Join(t.TempDir(), "x")},
		{"--otlp", "grpc://host", "--format", "otlp"},
		{"--otlp", "grpc://host", "--http", "localhost:0"},
	} {
		cmd := command(append([]string{"profile", "/nowhere/perf.data"}, args...)...)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(out), "--otlp") || strings.Contains(string(out), "sec/ret") {
			t.Errorf("%q: exit status %d, expected %d:\n%s", args, cmd.ProcessState.ExitCode(), exitUsage, out)
		}
	}
}

// No terminal is filled with what is no text.
func TestOTLPIsNotWrittenToATerminal(t *testing.T) {
	self := command().Path
	out := oracle.Run(t, "script", "-qec", self+" profile --in-process --format otlp "+wordsRecording+"; echo status $?", os.DevNull)
	if !strings.Contains(out, "--format otlp is no text") || !strings.Contains(out, "status 2") {
		t.Errorf("it prints %q", out)
	}
}
