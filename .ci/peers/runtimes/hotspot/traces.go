// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

var (
	threadLine = regexp.MustCompile(`^"(.*)" .*\bnid=(0x[0-9a-f]+|\d+)`)
	stateLine  = regexp.MustCompile(`^\s+java\.lang\.Thread\.State: (.*)$`)
	frameLine  = regexp.MustCompile(`^\s+at (.*)\(([^()]*)\)$`)
	// jhsdb says the thread's LWP alone, and frames with positions.
	agentThread = regexp.MustCompile(`^(?:Thread (\d+): |"(.*)" #\d+ .*nid=(0x[0-9a-f]+|\d+))`)
	agentFrame  = regexp.MustCompile(`^ - (.*)\(.*\) @bci=(-?\d+)(?:, line=(\d+))?`)
	hidden      = regexp.MustCompile(`[/+]0x[0-9a-f]+|/\d+`)
)

// plain is the name of a method without the number of a hidden class.
func plain(method string) string { return hidden.ReplaceAllString(method, "") }

// threadsOf reads a trace of jstack or jhsdb: the threads by LWP.
func threadsOf(trace string) map[string]thread {
	all := map[string]thread{}
	id := ""
	for _, line := range strings.Split(trace, "\n") {
		if strings.HasPrefix(line, "Found ") || strings.HasPrefix(line, "====") {
			id = "" // deadlocks repeat frames
		}
		if m := threadLine.FindStringSubmatch(line); m != nil {
			id = number(m[2])
			all[id] = thread{name: m[1]}
			continue
		}
		if m := agentThread.FindStringSubmatch(line); m != nil && m[1] != "" {
			id = m[1]
			all[id] = thread{}
			continue
		}
		if id == "" {
			continue
		}
		t := all[id]
		if m := stateLine.FindStringSubmatch(line); m != nil {
			t.state = m[1]
		}
		if m := frameLine.FindStringSubmatch(line); m != nil {
			name := m[1]
			if i := strings.LastIndex(name, "//"); i >= 0 {
				name = name[i+2:]
			}
			_, at, _ := strings.Cut(m[2], ":")
			n, _ := strconv.Atoi(at)
			t.frames = append(t.frames, frame{plain(name), n})
		}
		if m := agentFrame.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[3])
			t.frames = append(t.frames, frame{plain(m[1]), n})
		}
		all[id] = t
	}
	return all
}

// number is a number in decimal.
func number(text string) string {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return text
	}
	return strconv.FormatInt(n, 10)
}

var (
	crashThread = regexp.MustCompile(`(?m)^Current thread .*\bid=(\d+)`)
	// crashFrame is a frame of Java in the trace of a crash: J is compiled, j is interpreted.
	crashFrame = regexp.MustCompile(`^[jJ]  ?(?:\d+%? .*?(?:c1|c2) |\d+ +)?(?:J \d+ )?([\w.$<>/+]+)\(`)
)

// crashOf reads the trace of a crash: the methods of the thread that crashed, and its LWP.
func crashOf(trace string) (list []frame, lwp string, err error) {
	m := crashThread.FindStringSubmatch(trace)
	if m == nil {
		return nil, "", errors.New("the trace of the crash has no thread")
	}
	lwp = number(m[1])
	_, frames, ok := strings.Cut(trace, "\nJava frames:")
	if !ok {
		return nil, "", errors.New("the trace of the crash has no frames of Java")
	}
	for _, line := range strings.Split(frames, "\n")[1:] {
		if line == "" {
			break
		}
		if f := crashFrame.FindStringSubmatch(line); f != nil {
			list = append(list, frame{method: plain(f[1])})
		}
	}
	return list, lwp, nil
}
