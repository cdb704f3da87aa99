// SPDX-License-Identifier: Apache-2.0

//go:build linux

package engine_test

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine"
)

// TestLabelsOfAProcessStayInItsSnapshot takes a snapshot of a process with a rank and a secret in its environment.
func TestLabelsOfAProcessStayInItsSnapshot(t *testing.T) {
	const secret = "hunter2-of-the-environment"
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{"RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=3", "CUDA_VISIBLE_DEVICES=3", "PASSWORD=" + secret, "MY_SHARD=s7"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	e := newEngine()
	defer e.Close()
	live, err := e.OpenProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	host, _ := os.Hostname()
	want := map[string]string{"rank": "3", "world_size": "8", "local_rank": "3", "devices": "3", "host": host}
	has := func(name string, labels map[string]string) {
		t.Helper()
		for key, value := range want {
			if labels[key] != value {
				t.Errorf("%s: label %s is %q, expected %q", name, key, labels[key], value)
			}
		}
	}
	has("the process", live.Labels(nil))
	rule, err := engine.ParseLabelRule(`shard=^MY_SHARD=(.+)`)
	if err != nil {
		t.Fatal(err)
	}
	if labels := live.Labels([]engine.LabelRule{rule}); labels["shard"] != "s7" {
		t.Errorf("%v", labels)
	}
	taken, err := live.Snapshot(context.Background(), engine.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	taken.Labels = live.Labels([]engine.LabelRule{rule})
	var file bytes.Buffer
	if err := taken.Write(&file); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rank3.snapshot")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	labels := s.Labels(nil)
	if has("the snapshot", labels); !maps.Equal(labels, taken.Labels) {
		t.Errorf("%v, were %v", labels, taken.Labels)
	}
	if was, is := live.Info().Facts.Process, s.Info().Facts.Process; !is.Created.Equal(was.Created) || !is.Kept.Equal(was.Kept) || is.Host != host || time.Since(is.Kept) > time.Hour {
		t.Errorf("%+v, were %+v", is, was)
	}
	if document := snapshotJSON(t, path); strings.Contains(document, secret) || !strings.Contains(document, `"shard":"s7"`) {
		t.Errorf("snapshot.json: %.2000s", document)
	}
}

// snapshotJSON is snapshot.json of a snapshot.
func snapshotJSON(t *testing.T, path string) string {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	f, err := z.Open("snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
