// SPDX-License-Identifier: Apache-2.0

package target

import "strings"

// WithStart is a Target that knows how its process was started.
type WithStart interface {
	Target
	// Start reads it. The environment may have secrets: labels are made of it, and nothing prints
	// or keeps it.
	Start() Start
}

// Start is how a process was started, as far as it is known.
type Start struct {
	Command     []string // the words of the command line
	Environment []string // each NAME=VALUE
	Cgroup      string   // the lines of /proc/PID/cgroup
}

// MaxLabelName bounds the bytes of the name of a label.
const MaxLabelName = 64

// IsLabelName reports whether a label may have a name: a letter or _, and letters, digits and any of _.-
// behind it.
func IsLabelName(name string) bool {
	if name == "" || len(name) > MaxLabelName || !isLetter(name[0]) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && (c < '0' || c > '9') && strings.IndexByte(".-", c) < 0 {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
