package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/sdk"
)

func TestWavesSayWhichTheyAreAndWhatLaunchedThem(t *testing.T) {
	for _, tt := range []struct {
		name   string
		thread target.Thread
		text   string // the line below the thread's; "" for none
		json   string // of the members that it adds
	}{
		{"all is known", target.Thread{
			Wave:       &target.Wave{Wave: sdk.Wave{Agent: "1", Queue: "2", Dispatch: "3", Kernel: "add(int*)", Group: [3]uint32{4, 5, 6}, InGroup: 7}, HasGroup: true, HasInGroup: true},
			LaunchedBy: &target.Launch{Thread: "1200", Kind: "dispatch", Evidence: target.LaunchWaiting, Frames: []uint64{1}},
		}, "  kernel add(int*), agent 1, queue 2, dispatch 3, group (4,5,6), wave 7, launched by thread 1200 (dispatch, waiting)",
			`{"wave":{"agent":"1","queue":"2","dispatch":"3","kernel":"add(int*)","group":[4,5,6],"in_group":7},
			  "launched_by":{"thread":"1200","kind":"dispatch","evidence":"waiting"}}`},
		{"what is not known is absent", target.Thread{Wave: &target.Wave{Wave: sdk.Wave{Kernel: "k"}}}, "  kernel k", `{"wave":{"kernel":"k"}}`},
		{"the first group is a group", target.Thread{Wave: &target.Wave{HasGroup: true, HasInGroup: true}}, "  group (0,0,0), wave 0", `{"wave":{"group":[0,0,0],"in_group":0}}`},
		{"only the process is known", target.Thread{LaunchedBy: &target.Launch{Thread: "9", Evidence: target.LaunchQueue}},
			"  launched by thread 9 (queue)", `{"launched_by":{"thread":"9","evidence":"queue"}}`},
		{"a thread of a CPU", target.Thread{}, "", `{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.thread.ID = "w"
			r := &Report{Modules: []Module{}, Threads: []Thread{newThread(&engine.Target{}, &engine.Stack{Thread: &tt.thread, Stopped: engine.Stopped{Reason: engine.StopOutermost}})}}
			var b bytes.Buffer
			if err := r.WriteText(&b, TextOptions{}); err != nil {
				t.Fatal(err)
			}
			want := "thread w\n"
			if tt.text != "" {
				want += tt.text + "\n"
			}
			if !strings.HasSuffix(b.String(), want) {
				t.Errorf("%s\nexpected at its end\n%s", b.String(), want)
			}
			b.Reset()
			if err := r.WriteJSON(&b); err != nil {
				t.Fatal(err)
			}
			var got struct{ Threads []map[string]any }
			var members map[string]any
			if err := json.Unmarshal(b.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tt.json), &members); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"id", "crashed", "frames", "stopped"} {
				delete(got.Threads[0], name)
			}
			if d := cmp.Diff(members, got.Threads[0]); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
