// SPDX-License-Identifier: Apache-2.0

// Command values compares the values of variables that `unwindd stack --locals` prints
// with gdb's, and of Go with delve's: every variable of every frame of programs in C, C++
// and Rust by several compilers, at several levels of optimization and in several forms of
// debug information, and of programs of Debian.
//
//	go run ./values [-run REGEXP] [-details N] [-json FILE]
//
// VALUES_CORES is a folder that keeps programs and cores; those that are there already are
// not made again. VALUES_LIBCXX is a folder with Debian's libc++-22-dev and libc++abi-22-dev.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/internal/valuecheck"
)

var (
	only    = flag.String("run", "", "only programs whose `name` matches this expression")
	details = flag.Int("details", 5, "how many `differences` of each kind are listed of a program")
	keep    = flag.String("json", "", "a `file` that gets every difference, one JSON object a line")
	command = flag.String("unwindd", "", "the `executable`; built if there is none")
)

func main() {
	flag.Parse()
	cost.Exit("values", run())
}

// work is the state that all programs share.
type work struct {
	unwindd string
	cores   string
	table   *tabwriter.Writer
	details bytes.Buffer
	all     *json.Encoder
	total   *valuecheck.Result
	pretty  map[string]*valuecheck.Peer // what gdb's pretty printers said of a program
}

func run() error {
	temp, err := os.MkdirTemp("", "values-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	w := &work{unwindd: *command, cores: cmp.Or(os.Getenv("VALUES_CORES"), temp), total: valuecheck.NewResult(), pretty: map[string]*valuecheck.Peer{}}
	if w.unwindd == "" {
		if w.unwindd, err = cost.Build(temp); err != nil {
			return err
		}
	}
	if *keep != "" {
		f, err := os.Create(*keep)
		if err != nil {
			return err
		}
		defer f.Close()
		w.all = json.NewEncoder(f)
	}
	sources, err := filepath.Abs(filepath.Join("..", "..", "internal", "valuecheck", "testdata"))
	if err != nil {
		return err
	}
	workloads, err := filepath.Abs(filepath.Join("..", "..", "..", "shared", "workloads"))
	if err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	w.table = tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintln(w.table, "program\tframes\tvariables\tequal\twrong\tmissed\tvalues known\tequal\tof 100\twrong\tmissed\texplained\tno frame\tonly we\tonly we list\tneither\ttime\tpeer")
	var failed []error
	for _, s := range append(valuecheck.Subjects(sources, workloads), valuecheck.Libcxx22(sources, os.Getenv("VALUES_LIBCXX"))...) {
		if !pattern.MatchString(s.Name) {
			continue
		}
		fmt.Fprintln(os.Stderr, s.Name)
		if err := w.subject(s); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.Name, err))
		}
	}
	w.row("all", w.total, 0, 0)
	w.table.Flush()
	_, err = w.details.WriteTo(os.Stdout)
	w.classes()
	return errors.Join(append(failed, err)...)
}

// subject compares the values of a program, and then its pretty forms.
func (w *work) subject(s *valuecheck.Subject) error {
	exe, core, err := w.core(s)
	if err != nil {
		return err
	}
	for _, pretty := range []bool{false, true} {
		if pretty && !s.Pretty && !s.Go || !pretty && s.Go {
			continue
		}
		begin := time.Now()
		ours, err := w.ours(s, core, pretty)
		if err != nil {
			return err
		}
		mine := time.Since(begin)
		begin = time.Now()
		read := func() (*valuecheck.Peer, error) { return s.GDB(exe, core, pretty) }
		if s.Go {
			read = func() (*valuecheck.Peer, error) { return delveValues(exe, core) }
		}
		peer, err := read()
		if err != nil {
			return err
		}
		r := valuecheck.Compare(ours, peer)
		name := s.Name
		if pretty && !s.Go {
			name += ", pretty"
			w.pretty[s.Name] = peer
		}
		w.add(name, r, mine, time.Since(begin))
	}
	if s.Containers == "" {
		return nil
	}
	peer := w.pretty[s.Containers]
	if peer == nil {
		return fmt.Errorf("its contents were not compared: the program %q was not", s.Containers)
	}
	ours, err := w.ours(s, core, true)
	if err != nil {
		return err
	}
	w.add(s.Name+", pretty", valuecheck.CompareContents(ours, peer), 0, 0)
	return nil
}

func (w *work) add(name string, r *valuecheck.Result, mine, peer time.Duration) {
	w.row(name, r, mine, peer)
	w.differences(name, r)
	w.total.Add(r)
}

// core builds a program and takes its core, unless they are kept.
func (w *work) core(s *valuecheck.Subject) (exe, core string, err error) {
	dir := filepath.Join(w.cores, strings.NewReplacer(" ", "_", "/", "_").Replace(s.Name))
	kept := filepath.Join(dir, "kept")
	if text, err := os.ReadFile(kept); err == nil {
		exe, core, _ = strings.Cut(string(text), "\n")
		return exe, core, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", "", err
	}
	for _, c := range s.Commands {
		cmd := exec.Command(c[0], c[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", "", fmt.Errorf("%s: %w\n%s", strings.Join(c, " "), err, out)
		}
	}
	if exe, core, err = s.Core(dir, dir); err != nil {
		return "", "", err
	}
	return exe, core, os.WriteFile(kept, []byte(exe+"\n"+core), 0o600)
}

func (w *work) ours(s *valuecheck.Subject, core string, pretty bool) (*valuecheck.Document, error) {
	cmd := exec.Command(w.unwindd, s.Arguments(core, pretty)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("unwindd: %w\n%s", err, stderr.Bytes())
	}
	return valuecheck.ReadDocument(out)
}

func (w *work) row(name string, r *valuecheck.Result, ours, peer time.Duration) {
	share := 100.0
	if known := r.Known(); known > 0 {
		share = 100 * float64(r.Values[valuecheck.Equal]) / float64(known)
	}
	variables := 0
	for _, n := range r.Variables {
		variables += n
	}
	v, x := r.Variables, r.Values
	fmt.Fprintf(w.table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.2f\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.2fs\t%.2fs\n", name, r.Frames, variables,
		v[valuecheck.Equal], v[valuecheck.Wrong], v[valuecheck.Miss], r.Known(), x[valuecheck.Equal], share, x[valuecheck.Wrong], x[valuecheck.Miss],
		x[valuecheck.Explained], x[valuecheck.NoFrame], x[valuecheck.OnlyWe], x[valuecheck.Extra], x[valuecheck.Neither], ours.Seconds(), peer.Seconds())
}

// differences lists some of the differences of each kind.
func (w *work) differences(name string, r *valuecheck.Result) {
	listed := map[valuecheck.Outcome]int{}
	for _, p := range r.Pairs {
		if w.all != nil {
			_ = w.all.Encode(struct {
				Program string
				*valuecheck.Pair
			}{name, p})
		}
		if listed[p.Outcome]++; listed[p.Outcome] <= *details {
			fmt.Fprintf(&w.details, "%s: %v\n", name, p)
		}
	}
}

// classes lists why values differ that are explained, and what differs in words alone.
func (w *work) classes() {
	for _, c := range []struct {
		title  string
		counts map[string]int
	}{{"explained", w.total.Classes}, {"equal values in other words, by kind of type", w.total.Texts},
		{"names of types that differ", w.total.Types}, {"summaries that differ", w.total.Summaries}} {
		fmt.Printf("%s:\n", c.title)
		keys := slices.SortedFunc(maps.Keys(c.counts), func(a, b string) int { return cmp.Or(c.counts[b]-c.counts[a], strings.Compare(a, b)) })
		for _, k := range keys[:min(len(keys), 20)] {
			fmt.Printf("%8d %s\n", c.counts[k], k)
		}
	}
}
