// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// coldRecordings are recordings of a C++ program with copies of stacks: walked by two goroutines
// beside one, and read from the disk beside cat.
func coldRecordings(b *bench) (list []*contest, err error) {
	if !isHere("perf") {
		b.absent("perf", "nothing is recorded")
		return nil, nil
	}
	sizes := b.sizes(200, 2_000, 20_000)
	for _, n := range sizes {
		path, err := b.record("cold", "dwarf,16384", n)
		if err != nil {
			return nil, err
		}
		if err := cost.Run(".", "sync", path); err != nil { // pages that are not written cannot be dropped
			return nil, err
		}
		input := fmt.Sprintf("%d samples, %s", n, mib(float64(fileSize(path))/1024))
		list = append(list, b.byTwo(input, path), b.fromDisk(input, path))
	}
	if b.short {
		return list, nil
	}
	last := list[len(list)-2:]
	last[0].goals = []goal{{figure: byClock, tool: "unwindd -j 1", most: 1 / 1.8}}
	last[1].goals = []goal{{figure: byClock, tool: "cat", most: 1.2}}
	return list, nil
}

// byTwo asks two goroutines beside one.
func (b *bench) byTwo(input, path string) *contest {
	ask := func(jobs string) entry {
		return entry{tool: "unwindd -j " + jobs, argv: []string{b.unwindd, "profile", path, "-j", jobs, "--symbols=false", "--format", "json"}}
	}
	return &contest{input: input + ": two goroutines", ours: ask("2"), theirs: []entry{ask("1")}}
}

// fromDisk asks when the system has forgotten the file: `dd` asks it to, reading nothing.
func (b *bench) fromDisk(input, path string) *contest {
	ask := func(tool, command string) entry {
		return entry{tool: tool, argv: []string{"sh", "-c", "dd if=" + path + " iflag=nocache count=0 2> /dev/null; exec " + command}}
	}
	return &contest{
		input: input + ": from the disk",
		ours:  ask("unwindd", b.unwindd+" profile "+path+" --symbols=false --format json"), theirs: []entry{ask("cat", "cat "+path)},
	}
}

// gpuSamples are files of samples of an accelerator, as any profiler can write them. The goal is
// that 100 million samples take less than 1 GB.
func gpuSamples(b *bench) (list []*contest, err error) {
	const most, of = 1e9 / 1024, 100_000_000 // KiB
	for _, n := range b.sizes(10_000, 100_000, 1_000_000, 10_000_000) {
		path := filepath.Join(b.dir, fmt.Sprintf("gpu-%d.jsonl", n))
		if err := writeGPUSamples(path, n); err != nil {
			return nil, err
		}
		c := &contest{input: fmt.Sprintf("%d samples, %s", n, mib(float64(fileSize(path))/1024)), size: float64(n)}
		c.ours = entry{tool: "unwindd", argv: []string{b.unwindd, "profile", "--gpu-samples", path}}
		if n == 10_000_000 {
			c.goals = []goal{{figure: memory, most: most * float64(n) / of}}
		}
		list = append(list, c)
	}
	return list, nil
}

// writeGPUSamples writes samples at 500 places of a module that is not at hand, launched by 50
// launches.
func writeGPUSamples(path string, n int) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(file, 1<<20)
	fmt.Fprintln(w, `{"record":"format","format_version":1,"clock":"CLOCK_MONOTONIC"}`)
	fmt.Fprintln(w, `{"record":"module","id":1,"path":"/example/grade.co","arch":"amdgpu","processor":"gfx90a"}`)
	for i := range 50 {
		fmt.Fprintf(w, `{"record":"launch","id":%d,"pid":7823,"tid":7823,"comm":"host","time":%d,"frames":["0x401043","0x401071","0x40108e"]}`+"\n", i, 81203345120+i)
	}
	for i := range n {
		fmt.Fprintf(w, `{"record":"sample","time":%d,"module":1,"module_offset":"0x%x","exec_mask":"0xf0","lanes":64,"launched_by":{"launch":%d}}`+"\n", 81203399451+100*i, 0x1600+8*(i*7919%500), i%50)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return file.Close()
}
