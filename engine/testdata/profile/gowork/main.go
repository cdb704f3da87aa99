// Command gowork is a program to record: goroutines that read and write JSON,
// match regular expressions, execute templates, sort, and call themselves.
//
//	gowork SECONDS
//
// The seconds are of all its processors together.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/template"
)

type tree struct {
	Name     string
	Value    float64
	Children []*tree `json:",omitempty"`
}

func grow(depth int, seed *uint64) *tree {
	*seed = *seed*6364136223846793005 + 1442695040888963407
	t := &tree{Name: "n" + strconv.FormatUint(*seed>>40, 36), Value: float64(*seed>>50) / 7}
	if depth > 0 {
		for i := range 1 + int(*seed>>33)%2 {
			t.Children = append(t.Children, grow(depth-1-5*i%depth, seed))
		}
	}
	return t
}

func (t *tree) visit(f func(*tree)) {
	for _, c := range t.Children {
		c.visit(f)
	}
	f(t)
}

var (
	words = regexp.MustCompile(`(n[a-z]+[0-9]?|"[A-Z](a|b|.)*?")+,`)
	page  = template.Must(template.New("page").Parse(`{{define "t"}}{{.Name}}={{printf "%.2f" .Value}}{{range .Children}}({{template "t" .}}){{end}}{{end}}{{template "t" .}}`))
)

func work(seed uint64) int {
	t := grow(12, &seed)
	text, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	n := len(words.FindAllIndex(text[:min(len(text), 4000)], -1))
	var back tree
	if err := json.Unmarshal(text, &back); err != nil {
		panic(err)
	}
	var names []string
	back.visit(func(t *tree) { names = append(names, t.Name) })
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(b[1:], a[1:]) })
	var out bytes.Buffer
	if err := page.Execute(&out, &back); err != nil {
		panic(err)
	}
	return n + out.Len() + len(names)
}

func used() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		panic(err)
	}
	var wait sync.WaitGroup
	sums := make([]int, 2)
	for g := range sums {
		wait.Go(func() {
			for seed := uint64(g); used() < seconds; seed += 2 {
				sums[g] += work(seed)
			}
		})
	}
	wait.Wait()
	fmt.Println("done", sums[0] > 0, sums[1] > 0)
}
