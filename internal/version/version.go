// SPDX-License-Identifier: Apache-2.0

// Package version describes this build of unwindd.
package version

import (
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// The stamps of a release, set by `-ldflags "-X ...version.version=v1.2.3"`. The go
// command stamps a build by itself where it finds the repository, which it does not in
// an archive of the sources nor in a linked work tree of git.
var (
	version string // as v1.2.3
	commit  string // in full
	date    string // of the commit, as RFC 3339 has it
)

// Unknown is the version of a build without a known one.
const Unknown = "devel"

// Build describes an executable.
type Build struct {
	// Version is a tag such as v1.2.3, a pseudo-version of Go where the commit has no
	// tag, or Unknown. It ends with +dirty where files differed from the commit.
	Version string `json:"version"`
	// Commit is the commit that was built, as git has it; "" where that is not known.
	Commit string `json:"commit,omitempty"`
	// CommitTime is when the commit was made, in UTC as RFC 3339 has it; "" where that
	// is not known.
	CommitTime string `json:"commit_time,omitempty"`
	// Go is the version of Go that built it.
	Go string `json:"go"`
	// Platform is the operating system and the architecture, as linux/amd64.
	Platform string `json:"platform"`
}

// Read describes this executable.
func Read() Build {
	info, _ := debug.ReadBuildInfo()
	return read(info)
}

// read takes the linker's values, else the go command's stamps.
func read(info *debug.BuildInfo) Build {
	b := Build{Version: version, Commit: commit, CommitTime: inUTC(date), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		info = &debug.BuildInfo{}
	}
	stamped := map[string]string{}
	for _, s := range info.Settings {
		stamped[s.Key] = s.Value
	}
	// A commit of one origin and the version of another could contradict each other.
	if b.Version == "" && b.Commit == "" && b.CommitTime == "" {
		b.Version, b.Commit, b.CommitTime = info.Main.Version, stamped["vcs.revision"], inUTC(stamped["vcs.time"])
		if stamped["vcs.modified"] == "true" && !strings.HasSuffix(b.Version, "+dirty") && b.Version != "(devel)" {
			b.Version += "+dirty"
		}
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = Unknown
	}
	return b
}

// inUTC returns a time in UTC; "" for a text that is no time.
func inUTC(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
