// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/internal/oracle"
)

// jobsOf are the IDs in the lines that `unwindd submit` prints.
func jobsOf(t *testing.T, out string) (ids []string) {
	t.Helper()
	for line := range strings.Lines(out) {
		id, _, _ := strings.Cut(line, " ")
		if !fleet.IsID(id) {
			t.Fatalf("no ID of a job: %q", line)
		}
		ids = append(ids, id)
	}
	return ids
}

// TestAFleetWalksForAComparison has workers make the parts, which are merged here: the comparison is that of the
// targets themselves. Reports as JSON are as good.
func TestAFleetWalksForAComparison(t *testing.T) {
	oracle.All(t)
	dir, work := fleetDir(t), fleetFiles(t)
	startWorker(t, dir, "--queue-listen", "localhost:0", "--workers", "2")
	queue := fleet.ReadAddress(queueDir(filepath.Join(dir, "unwindd")))
	if queue == "" {
		t.Fatal("the worker's queue has no address")
	}
	if err := os.WriteFile(filepath.Join(work, "broken"), []byte("no target"), 0o600); err != nil {
		t.Fatal(err)
	}
	targets := []string{"core", "crash.dmp", "mixed.snapshot", "broken"}
	want, _ := inFleet(t, dir, work, append([]string{"compare", "--format", "json", "--label", "kind=[a-z]+$"}, targets...)...)
	out, status := inFleet(t, dir, work, append([]string{"submit", "--as", "compare", "--label", "kind=[a-z]+$"}, targets...)...)
	ids := jobsOf(t, out)
	if status != 0 || len(ids) != 4 {
		t.Fatalf("status %d, %s", status, out)
	}
	if _, status := inFleet(t, dir, work, append([]string{"results", "--wait"}, ids...)...); status != 0 {
		t.Errorf("results: status %d", status)
	}
	for how, args := range map[string][]string{"IDs": ids, "all": {"--queue", queue}} {
		got, status := inFleet(t, dir, work, append([]string{"compare", "--format", "json"}, args...)...)
		if diff := cmp.Diff(want, got); diff != "" || status != 0 {
			t.Errorf("%s: status %d, -expected +got:\n%s", how, status, diff)
		}
	}
	crashed := append([]string{"--crashed", "--label", "kind=[a-z]+$"}, targets...)
	want, _ = inFleet(t, dir, work, append([]string{"compare", "--format", "json"}, crashed...)...)
	out, _ = inFleet(t, dir, work, append([]string{"submit", "--as", "compare"}, crashed...)...)
	ids = jobsOf(t, out)
	inFleet(t, dir, work, append([]string{"results", "--wait"}, ids...)...)
	got, status := inFleet(t, dir, work, append([]string{"compare", "--format", "json"}, ids...)...)
	if diff := cmp.Diff(want, got); diff != "" || status != 0 || !strings.Contains(got, `"crashed_only":true`) {
		t.Errorf("the threads that crashed: status %d, -expected +got:\n%s", status, diff)
	}
	var c comparedJSON
	reports, _ := inFleet(t, dir, work, "submit", "core", "crash.dmp", "--format", "json")
	ids = jobsOf(t, reports)
	inFleet(t, dir, work, append([]string{"results", "--wait"}, ids...)...)
	got, status = inFleet(t, dir, work, append([]string{"compare", "--format", "json", "0f9a66d1c5b7e34a8d2b3c4d5e6f7081"}, ids...)...)
	if err := json.Unmarshal([]byte(got), &c); err != nil || status != 0 || len(c.Targets) != 3 {
		t.Fatalf("status %d, %v, %s", status, err, got)
	}
	reasons := ""
	for _, class := range c.Classes {
		reasons += class.Unread
	}
	if reasons != fleet.ErrNoResult.Error() {
		t.Errorf("unread: %q, expected only a job without a result", reasons)
	}
}

// TestProcessesAreCollectedForAFleet submits the snapshots of one moment.
func TestProcessesAreCollectedForAFleet(t *testing.T) {
	oracle.All(t)
	dir := fleetDir(t)
	startWorker(t, dir, "--queue-listen", "localhost:0")
	pids := append(sleepers(t, 3), victim(t, "threads", "3"))
	out, status := inFleet(t, dir, dir, "submit", "--collect", strings.Join(pids, ",")+",4194309", "--as", "compare", "--repeat", "2", "--interval", "1ms")
	ids := jobsOf(t, out)
	if status != 0 || len(ids) != 8 || !strings.Contains(out, ".sleep."+pids[0]+".2.snapshot") {
		t.Fatalf("status %d, %s", status, out)
	}
	inFleet(t, dir, dir, append([]string{"results", "--wait"}, ids...)...)
	got, status := inFleet(t, dir, dir, append([]string{"compare", "--format", "json"}, ids...)...)
	var c comparedJSON
	if err := json.Unmarshal([]byte(got), &c); err != nil || status != 0 || len(c.Targets) != 4 || len(c.Classes) != 2 || len(c.Classes[0].Targets) != 1 {
		t.Fatalf("status %d, %v, %s", status, err, got)
	}
	if odd := c.Targets[c.Classes[0].Targets[0]]; odd.Count != 2 || !strings.Contains(odd.Path, pids[3]) {
		t.Errorf("%+v", odd)
	}
}
