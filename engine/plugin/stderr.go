package plugin

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// Bounds of what a process's standard error may bring in, in bytes.
const (
	maxStderrLine  = 4 << 10
	maxStderrTotal = 1 << 20
	maxLastWords   = 1 << 10
)

// A stderrLog passes what a plugin writes to standard error to the logger, line
// by line, printable and bounded, and keeps the end of it for the reason of a
// failure.
type stderrLog struct {
	logger hclog.Logger

	mu    sync.Mutex
	line  []byte
	cut   bool // the rest of the line is dropped
	total int
	last  []string // the last lines, plain text
	size  int      // bytes of last
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
		l.logger.Warn("the plugin wrote too much to standard error; the rest is dropped", "bytes", maxStderrTotal)
		return n, nil
	}
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part = p[:end]
		}
		if room := maxStderrLine - len(l.line); len(part) > room {
			part, l.cut = part[:room], true
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

// flush logs the line. One of hclog's JSON keeps its level and its message.
func (l *stderrLog) flush() {
	line := strings.TrimRight(string(l.line), "\r")
	if l.cut {
		line += "..."
	}
	l.line, l.cut = l.line[:0], false
	if line == "" {
		return
	}
	level := hclog.Debug
	var entry map[string]any
	if json.Unmarshal([]byte(line), &entry) == nil {
		if message, ok := entry["@message"].(string); ok {
			line = message
			if s, ok := entry["@level"].(string); ok {
				if parsed := hclog.LevelFromString(s); parsed != hclog.NoLevel {
					level = parsed
				}
			}
			for _, key := range []string{"error", "err"} {
				if e, ok := entry[key].(string); ok {
					line += ": " + e
				}
			}
		}
	}
	line = printable(line)
	l.logger.Log(level, line)
	if level == hclog.Trace || (level == hclog.Debug && entry != nil) {
		return // go-plugin's own chatter is nobody's last words
	}
	l.last = append(l.last, line)
	l.size += len(line)
	for len(l.last) > 1 && l.size > maxLastWords {
		l.size -= len(l.last[0])
		l.last = l.last[1:]
	}
}

// lastWords is the end of what was written; "" when nothing was.
func (l *stderrLog) lastWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 0 {
		l.flush()
	}
	return clip(strings.Join(l.last, "; "))
}
