// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// processor is a processor, the assemblers that know it, and the disassembler.
type processor struct {
	name       string
	assemblers []string
	isOld      bool // the disassembler of CUDA 12 alone knows it
}

var processors = []processor{
	{"sm_52", []string{"ptxas 11.8", "ptxas 12.9"}, true},
	{"sm_61", []string{"ptxas 11.8", "ptxas 12.4"}, true},
	{"sm_70", []string{"ptxas 12.4", "ptxas 12.9"}, true},
	{"sm_75", []string{"ptxas 11.8", "ptxas 13.5"}, false},
	{"sm_80", []string{"ptxas 12.9", "ptxas 13.5"}, false},
	{"sm_90", []string{"ptxas 12.9", "ptxas 13.5"}, false},
	{"sm_100", []string{"ptxas 12.9", "ptxas 13.5"}, false},
	{"sm_120", []string{"ptxas 12.9", "ptxas 13.5"}, false},
}

// level is how a source is compiled and assembled.
type level struct {
	name           string
	compile, build []string
}

var levels = []level{
	{"O0", []string{"-lineinfo"}, []string{"-lineinfo", "-O0"}},
	{"O1", []string{"-lineinfo"}, []string{"-lineinfo", "-O1"}},
	{"O2", []string{"-lineinfo"}, []string{"-lineinfo", "-O2"}},
	{"O3", []string{"-lineinfo"}, []string{"-lineinfo", "-O3"}},
	{"G", []string{"-G"}, []string{"-g"}},
}

// nvcc compiles the generated source by nvcc, assembles it for every processor, and compares.
func (p *peer) nvcc() error {
	if _, err := p.write("parts.cuh", parts); err != nil {
		return err
	}
	path, err := p.write("kernels.cu", source())
	if err != nil {
		return err
	}
	nvcc, err := p.tools.nvcc()
	if err != nil {
		return err
	}
	made := map[string]string{} // PTX by what it was compiled with
	for _, l := range levels {
		key := strings.Join(l.compile, "")
		if made[key] == "" {
			made[key] = filepath.Join(p.dir, "kernels"+key+".ptx")
			if err := cost.Run(p.dir, nvcc, append([]string{"-arch=compute_75", "-ptx", "-o", made[key], path}, l.compile...)...); err != nil {
				return err
			}
		}
		if err := p.assemble("nvcc-"+l.name, made[key], "nvcc -"+l.name, processors, l.build); err != nil {
			return err
		}
	}
	return nil
}

// assemble makes cubins of a PTX file for processors by each of their assemblers, and compares them.
func (p *peer) assemble(name, path, compiler string, list []processor, flags []string) error {
	ptx, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, processor := range list {
		for _, a := range assemblers {
			file := fmt.Sprintf("%s-%s-%s", name, processor.name, strings.ReplaceAll(a.name, " ", "-"))
			cubin, isChosen := p.file(file)
			if !isChosen || !contains(processor.assemblers, a.name) {
				continue
			}
			text, err := p.write(file+".ptx", forProcessor(string(ptx), a.version, processor.name))
			if err != nil {
				return err
			}
			ptxas, err := p.tools.file(a.group, a.path)
			if err != nil {
				return err
			}
			if err := cost.Run(p.dir, ptxas, append([]string{"-arch=" + processor.name, "-o", cubin, text}, flags...)...); err != nil {
				return err
			}
			if err := p.compare(compiler, cubin, processor.isOld); err != nil {
				return err
			}
		}
	}
	return nil
}

func contains(list []string, name string) bool {
	for _, one := range list {
		if one == name {
			return true
		}
	}
	return false
}

// cub compiles kernels of CCCL.
func (p *peer) cub() error {
	path, err := p.write("cub.cu", cubSource)
	if err != nil {
		return err
	}
	for _, processor := range []string{"sm_80", "sm_120"} {
		cubin, isChosen := p.file("cub-" + processor)
		if !isChosen {
			continue
		}
		nvcc, err := p.tools.nvcc()
		if err != nil {
			return err
		}
		if err := cost.Run(p.dir, nvcc, "-arch="+processor, "-lineinfo", "-std=c++17", "-I", filepath.Join(filepath.Dir(nvcc), "../include/cccl"), "-cubin", "-o", cubin, path); err != nil {
			return err
		}
		if err := p.compare("nvcc, CCCL", cubin, false); err != nil {
			return err
		}
	}
	return nil
}

// clang compiles the generated source by clang's NVPTX.
func (p *peer) clang() error {
	for _, debug := range []string{"-gline-tables-only", "-g"} {
		path, err := p.write("clang.cpp", source())
		if err != nil {
			return err
		}
		ptx := filepath.Join(p.dir, "clang"+debug+".ptx")
		if err := cost.Run(p.dir, "clang++-22", "-target", "nvptx64-nvidia-cuda", "-march=sm_75", "-Xclang", "-target-feature", "-Xclang", "+ptx75", "-O2", debug, "-S", "-nostdinc", "-o", ptx, path); err != nil {
			return err
		}
		if err := p.assemble("clang"+debug, ptx, "clang "+debug, processors[3:], []string{"-lineinfo"}); err != nil {
			return err
		}
	}
	return nil
}

//go:embed testdata/kernels.py
var kernels []byte

// triton compiles kernels of Triton.
func (p *peer) triton() error {
	if _, isChosen := p.file("triton"); !isChosen {
		return nil
	}
	if _, err := p.write("kernels.py", string(kernels)); err != nil {
		return err
	}
	python, err := p.tools.python()
	if err != nil {
		return err
	}
	if err := cost.Run(p.dir, "env", "TRITON_CACHE_DIR="+filepath.Join(p.dir, "triton"), python, "kernels.py", p.dir, "75", "80", "89", "90", "100", "120"); err != nil {
		return err
	}
	list, err := filepath.Glob(filepath.Join(p.dir, "triton-*.cubin"))
	if err != nil {
		return err
	}
	for _, cubin := range list {
		if err := p.compare("Triton", cubin, false); err != nil {
			return err
		}
	}
	return nil
}
