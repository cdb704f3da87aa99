// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/unwindd/unwindd/engine/report"
)

// collection describes the outcome of a collecting.
type collection struct {
	Version   int                 `json:"version"`
	Host      string              `json:"host"`
	Moments   []collectedMoment   `json:"moments"`
	Snapshots []collectedSnapshot `json:"snapshots"`
	Left      []leftProcess       `json:"left"` // processes without a snapshot

	ended error // why there are not all moments
}

// collectedMoment is a moment at which processes were stopped.
type collectedMoment struct {
	Moment int       `json:"moment"` // from 1 on
	Time   time.Time `json:"time"`   // when the first process was stopped
	// Spread is how many seconds later the last one was.
	Spread float64 `json:"spread_seconds"`
	// Stopped is for how many seconds a process was stopped at most.
	Stopped float64 `json:"stopped_seconds"`
	Count   int     `json:"snapshots"`
}

// collectedSnapshot is a snapshot that was written.
type collectedSnapshot struct {
	Path   string    `json:"path"`
	PID    int       `json:"pid"`
	Name   string    `json:"name"`
	Moment int       `json:"moment"`
	Time   time.Time `json:"time"` // when the process was stopped
	// Stopped is for how many seconds.
	Stopped  float64  `json:"stopped_seconds"`
	Bytes    int64    `json:"bytes"`
	Threads  int      `json:"threads"`
	Frames   int      `json:"frames"`
	Problems []string `json:"problems"`
}

// leftProcess is a process without a snapshot.
type leftProcess struct {
	PID    int    `json:"pid,omitempty"`
	Name   string `json:"name,omitempty"`
	Moment int    `json:"moment,omitempty"`
	Reason string `json:"reason"`
}

// end sorts the lists, and sums the moments up.
func (c *collection) end(err error) {
	c.ended = err
	slices.SortFunc(c.Snapshots, func(a, b collectedSnapshot) int { return cmp.Or(a.Moment-b.Moment, a.PID-b.PID) })
	slices.SortFunc(c.Left, func(a, b leftProcess) int { return cmp.Or(a.Moment-b.Moment, a.PID-b.PID) })
	for i := 0; i < len(c.Snapshots); {
		m := collectedMoment{Moment: c.Snapshots[i].Moment, Time: c.Snapshots[i].Time}
		last := m.Time
		for ; i < len(c.Snapshots) && c.Snapshots[i].Moment == m.Moment; i++ {
			at := c.Snapshots[i].Time
			m.Count++
			m.Stopped = max(m.Stopped, c.Snapshots[i].Stopped)
			if at.Before(m.Time) {
				m.Time = at
			}
			if at.After(last) {
				last = at
			}
		}
		m.Spread = last.Sub(m.Time).Seconds()
		c.Moments = append(c.Moments, m)
	}
}

// failure is the error of a collecting that has no snapshot, or was ended.
func (c *collection) failure(ctx context.Context) error {
	switch {
	case c.ended != nil:
		return c.ended
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(c.Snapshots) > 0:
		return nil
	}
	return errors.New("nothing was collected")
}

// print prints the outcome of a collecting: a summary, and each snapshot where --verbose asks for it.
func (f *collectFlags) print(c *collection) error {
	if f.format == "json" {
		return report.WriteJSON(stdout, c)
	}
	p := report.NewLinePrinter(stdout)
	bytes := int64(0)
	for i := range c.Snapshots {
		s := &c.Snapshots[i]
		bytes += s.Bytes
		if f.verbose {
			p.Printf("%s: %d bytes: %d threads, %d frames\n", s.Path, s.Bytes, s.Threads, s.Frames)
		}
	}
	for _, text := range c.momentTexts(f.repeat, f.verbose) {
		p.Printf("%s\n", text)
	}
	if len(c.Snapshots) > 0 {
		p.Printf("%s: %s, %d bytes\n", f.output, numberOf(len(c.Snapshots), "snapshot", "snapshots"), bytes)
	}
	if err := p.Flush(); err != nil {
		return err
	}
	c.complain(f.verbose)
	return nil
}

// maxListed is how many lines a list has, unless --verbose asks for all.
const maxListed = 20

// momentTexts describes the moments. Where there are many, those after the first few are one.
func (c *collection) momentTexts(moments int, all bool) (texts []string) {
	list := c.Moments
	if len(list) > maxListed && !all {
		list = list[:maxListed-1]
	}
	for i := range list {
		texts = append(texts, list[i].text(moments))
	}
	if rest := c.Moments[len(list):]; len(rest) > 0 {
		texts = append(texts, sumOf(rest))
	}
	return texts
}

// sumOf describes several moments together.
func sumOf(list []collectedMoment) string {
	var spread, stopped float64
	for i := range list {
		spread, stopped = max(spread, list[i].Spread), max(stopped, list[i].Stopped)
	}
	return fmt.Sprintf("%d more moments, up to %s: the last process at most %v after the first, each stopped for %v at most: -v lists all",
		len(list), list[len(list)-1].at(), seconds(spread), seconds(stopped))
}

// seconds is a duration as a text shows it.
func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Microsecond)
}

func (m *collectedMoment) at() string { return m.Time.Local().Format("2006-01-02 15:04:05.000") }

func (m *collectedMoment) text(moments int) string {
	text := ""
	if moments > 1 {
		text = fmt.Sprintf("moment %d: ", m.Moment)
	}
	text += fmt.Sprintf("%s, stopped at %s", numberOf(m.Count, "process", "processes"), m.at())
	if m.Count > 1 {
		text += fmt.Sprintf(", the last one %v after the first", seconds(m.Spread))
	}
	if m.Stopped > 0 {
		text += fmt.Sprintf(", for %v at most", seconds(m.Stopped))
	}
	return text
}

// numberOf is a number with its noun.
func numberOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// complaint is a reason, and those about which it is said.
type complaint struct {
	reason string
	about  []string // each once
}

// complaints groups reasons, in the order in which they were first added.
type complaints struct {
	list  []*complaint
	index map[string]*complaint
}

func (c *complaints) add(reason, about string) {
	if c.index == nil {
		c.index = map[string]*complaint{}
	}
	g := c.index[reason]
	if g == nil {
		g = &complaint{reason: reason}
		c.index[reason], c.list = g, append(c.list, g)
	}
	if n := len(g.about); n == 0 || g.about[n-1] != about {
		g.about = append(g.about, about)
	}
}

// print prints a line for each reason, or for each that it is about where all are wanted.
func (c *complaints) print(prefix, nouns string, all bool) {
	for i, g := range c.list {
		switch {
		case all:
			for _, about := range g.about {
				messages.Printf("unwindd: %s%s: %s\n", prefix, about, g.reason)
			}
		case i == maxListed:
			messages.Printf("unwindd: %s%d more reasons: -v lists all\n", prefix, len(c.list)-i)
			return
		case len(g.about) == 1:
			messages.Printf("unwindd: %s%s: %s\n", prefix, g.about[0], g.reason)
		default:
			messages.Printf("unwindd: %s%d %s: %s\n", prefix, len(g.about), nouns, g.reason)
		}
	}
}

// complain lists the problems of snapshots, and why processes have none: equal reasons are one line.
func (c *collection) complain(all bool) {
	var snapshots, processes complaints
	for i := range c.Snapshots {
		for _, problem := range c.Snapshots[i].Problems {
			snapshots.add(problem, c.Snapshots[i].Path)
		}
	}
	left := slices.Clone(c.Left)
	slices.SortStableFunc(left, func(a, b leftProcess) int { return a.PID - b.PID }) // the moments of a process
	for i := range left {
		processes.add(left[i].Reason, left[i].about())
	}
	snapshots.print("", "snapshots", all)
	processes.print("not collected: ", "processes", all)
}

func (l *leftProcess) about() string {
	switch {
	case l.PID == 0:
		return l.Name
	case l.Name == "":
		return fmt.Sprintf("process %d", l.PID)
	}
	return fmt.Sprintf("process %d (%s)", l.PID, l.Name)
}
