// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func stamp(main string, settings ...string) *debug.BuildInfo {
	info := &debug.BuildInfo{Main: debug.Module{Version: main}}
	for i := 0; i < len(settings); i += 2 {
		info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
	}
	return info
}

func TestWhatIsNotKnownIsNotSaid(t *testing.T) {
	const rev, pseudo = "806b0641f5d2c3a4b5968778695a4b3c2d1e0f00", "v0.0.0-20261123211347-806b0641f5d2"
	for _, c := range []struct {
		name    string
		info    *debug.BuildInfo
		flags   [3]string
		version string
		commit  string
		time    string
	}{
		{"nothing", nil, [3]string{}, "devel", "", ""},
		{"a folder without a repository", stamp("(devel)"), [3]string{}, "devel", "", ""},
		{"a checkout", stamp(pseudo, "vcs.revision", rev, "vcs.time", "2026-11-23T22:13:47+01:00", "vcs.modified", "false"), [3]string{}, pseudo, rev, "2026-11-23T21:13:47Z"},
		{"a changed checkout", stamp(pseudo+"+dirty", "vcs.revision", rev, "vcs.modified", "true"), [3]string{}, pseudo + "+dirty", rev, ""},
		{"a Go that does not say so", stamp("v1.2.3", "vcs.revision", rev, "vcs.modified", "true"), [3]string{}, "v1.2.3+dirty", rev, ""},
		{"a Go that has no version", stamp("(devel)", "vcs.revision", rev, "vcs.modified", "true"), [3]string{}, "devel", rev, ""},
		{"go install of a version", stamp("v1.2.3"), [3]string{}, "v1.2.3", "", ""},
		{"a release", stamp("(devel)"), [3]string{"v1.2.3", rev, "2026-11-23T21:13:47Z"}, "v1.2.3", rev, "2026-11-23T21:13:47Z"},
		{"a release of one commit in the repository of another", stamp(pseudo, "vcs.revision", "other", "vcs.time", "2020-01-01T00:00:00Z"), [3]string{"v1.2.3", "", ""}, "v1.2.3", "", ""},
		{"a date that is none", stamp("(devel)"), [3]string{"v1.2.3", "", "yesterday"}, "v1.2.3", "", ""},
	} {
		version, commit, date = c.flags[0], c.flags[1], c.flags[2]
		got := read(c.info)
		want := Build{c.version, c.commit, c.time, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		if got != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
	version, commit, date = "", "", ""
}
