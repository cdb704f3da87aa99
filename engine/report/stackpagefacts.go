package report

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/target"
)

// processFacts are what a page says of a process and its machine, each by its name; ""
// where it is not known.
var processFacts = []struct {
	name string
	of   func(*target.Facts) string
}{
	{"process", func(f *target.Facts) string { return positive(f.Process.ID) }},
	{"command", func(f *target.Facts) string { return f.Process.Command }},
	{"executable", func(f *target.Facts) string { return f.Process.Executable }},
	{"started", func(f *target.Facts) string { return moment(f.Process.Created) }},
	{"ended", func(f *target.Facts) string { return moment(f.Process.Kept) }},
	{"system", func(f *target.Facts) string { return inWords(f.System.OS, f.System.Version, f.System.Build) }},
	{"distribution", func(f *target.Facts) string {
		if d := f.Distribution; d != nil {
			return cmp.Or(d.Description, inWords(d.ID, d.Release))
		}
		return ""
	}},
	{"machine", func(f *target.Facts) string { return inWords(f.System.Arch, f.System.CPU) }},
	{"processors", func(f *target.Facts) string { return positive(int64(f.System.Processors)) }},
	{"microcode", func(f *target.Facts) string {
		if !f.System.HasMicrocode {
			return ""
		}
		return address(f.System.Microcode)
	}},
}

// positive is a number; "" of one that stands for not known.
func positive(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// moment is a time in UTC; "" where it is not known.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// inWords are those that are there, with blanks between.
func inWords(list ...string) string {
	return strings.Join(strings.Fields(strings.Join(list, " ")), " ")
}
