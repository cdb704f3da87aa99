// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// Bounds of a process's standard error, in bytes.
const (
	maxStderrLine  = 16 << 10 // a line of JSON may have the calls of a goroutine
	maxStderrTotal = 1 << 20
	maxLastWords   = 1 << 10
)

// stderrLog passes the standard error of a plugin to the logger, line by line, printable
// and bounded, and keeps its end for the reason of a failure.
type stderrLog struct {
	logger hclog.Logger

	mu    sync.Mutex
	line  []byte
	isCut bool // the rest of the line is dropped
	total int
	last  []string // the last lines, plain text
	size  int      // bytes of last
	crash crash
}

// Write takes output as it comes. It never fails and never blocks on a line's end.
func (l *stderrLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	if l.total >= maxStderrTotal {
		return n, nil
	}
	if l.total += n; l.total >= maxStderrTotal {
		l.logger.Warn("the plugin wrote too much to standard output and error; the rest is dropped", "bytes", maxStderrTotal)
		return n, nil
	}
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part = p[:end]
		}
		if room := maxStderrLine - len(l.line); len(part) > room {
			part, l.isCut = part[:room], true
		}
		l.line = append(l.line, part...)
		if end < 0 {
			return n, nil
		}
		l.flush()
		p = p[end+1:]
	}
	return n, nil
}

// flush logs the line. A line of hclog's JSON keeps its level, its message and its
// values; a stack among them is logged line by line.
func (l *stderrLog) flush() {
	line := strings.TrimRight(string(l.line), "\r")
	if l.isCut {
		line += "..."
	}
	l.line, l.isCut = l.line[:0], false
	l.crash.line(line)
	if line == "" {
		return
	}
	level, stack, structured := hclog.Debug, "", false
	var entry map[string]any
	if json.Unmarshal([]byte(line), &entry) == nil {
		if message, ok := entry["@message"].(string); ok {
			structured = true
			level = levelOf(entry)
			stack, _ = entry["stack"].(string)
			line = message + valuesOf(entry)
		}
	}
	line = printable(line)
	l.logger.Log(level, line)
	for call := range strings.SplitSeq(strings.TrimSuffix(stack, "\n"), "\n") {
		if call != "" {
			l.logger.Log(hclog.Debug, printable(strings.ReplaceAll(call, "\t", "  ")))
		}
	}
	if level == hclog.Trace || (level == hclog.Debug && structured) {
		return // go-plugin's own output does not count as last words
	}
	l.last = append(l.last, line)
	l.size += len(line)
	for len(l.last) > 1 && l.size > maxLastWords {
		l.size -= len(l.last[0])
		l.last = l.last[1:]
	}
}

// levelOf is the level of an entry of hclog.
func levelOf(entry map[string]any) hclog.Level {
	s, _ := entry["@level"].(string)
	if level := hclog.LevelFromString(s); level != hclog.NoLevel {
		return level
	}
	return hclog.Debug
}

// valuesOf returns the values of an entry as text to append to its message.
func valuesOf(entry map[string]any) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		if key != "stack" && !strings.HasPrefix(key, "@") {
			fmt.Fprintf(&text, ", %s: %v", key, entry[key])
		}
	}
	return text.String()
}

// crashed is how and where the process crashed; "" where it did not write that.
func (l *stderrLog) crashed() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.crash.String()
}

// lastWords is the crash, or else the end of the output; "" where there is none.
func (l *stderrLog) lastWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 0 {
		l.flush()
	}
	if c := l.crash.String(); c != "" {
		return clip(c)
	}
	return clip(strings.Join(l.last, "; "))
}
