// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// Packages of PyPI, each group in a folder of its own.
var packages = map[string][]string{
	"cuda13": {
		"nvidia-cuda-nvcc==13.5.37", "nvidia-nvvm==13.5.37", "nvidia-cuda-crt==13.5.37", "nvidia-cuda-runtime==13.5.37", "nvidia-cuda-nvdisasm==13.5.37",
		"nvidia-cuda-cccl==13.3.5.0.6",
	},
	"cuda11": {"nvidia-cuda-nvcc-cu11==11.8.89"},
	"cuda12": {"nvidia-cuda-nvcc-cu12==12.9.86"},
	"old":    {"triton==3.0.0"}, // whose nvdisasm 12.4 and ptxas know processors from sm_50 on
}

// triton has the packages in the environment of Python for kernels.py.
const triton = "triton==3.9.0 numpy==2.4.6"

// assembler is a ptxas, with the version of PTX that it reads.
type assembler struct{ name, group, path, version string }

// assemblers are listed the newest first.
var assemblers = []assembler{
	{"ptxas 13.5", "cuda13", "nvidia/cu13/bin/ptxas", "9.0"},
	{"ptxas 12.9", "cuda12", "nvidia/cuda_nvcc/bin/ptxas", "8.7"},
	{"ptxas 12.4", "old", "triton/backends/nvidia/bin/ptxas", "8.0"},
	{"ptxas 11.8", "cuda11", "nvidia/cuda_nvcc/bin/ptxas", "7.5"},
}

// tools are the tools that PyPI has, in the cache directory. Each group is fetched when one of its
// files is needed: all of them are a gigabyte.
type tools struct{ root string }

func newTools() (*tools, error) {
	cache, err := os.UserCacheDir()
	return &tools{filepath.Join(cache, "unwindd-peers", "nvidia")}, err
}

// file returns the path of a file of a group.
func (t *tools) file(group, path string) (string, error) {
	dir, err := once(filepath.Join(t.root, group), func(dir string) error { return unpack(dir, packages[group]) })
	return filepath.Join(dir, path), err
}

// nvcc returns the path of the compiler.
func (t *tools) nvcc() (string, error) { return t.file("cuda13", "nvidia/cu13/bin/nvcc") }

// python returns the path of an interpreter of Python with Triton.
func (t *tools) python() (string, error) {
	dir, err := once(filepath.Join(t.root, "triton"), func(dir string) error {
		return cost.Run(dir, "sh", "-c", "python3 -m venv . && bin/pip -q install --only-binary :all: "+triton)
	})
	return filepath.Join(dir, "bin/python3"), err
}

// disassembler returns the path of an nvdisasm: the one of CUDA 12 for processors that are old.
func (t *tools) disassembler(isOld bool) (string, error) {
	if isOld {
		return t.file("old", "triton/backends/nvidia/bin/nvdisasm")
	}
	return t.file("cuda13", "nvidia/cu13/bin/nvdisasm")
}

// unpack downloads wheels and unpacks them into a folder.
func unpack(dir string, list []string) error {
	if err := cost.Run(dir, "sh", "-c", "python3 -m pip -q download --no-deps -d wheels "+strings.Join(list, " ")); err != nil {
		return err
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "wheels/*.whl"))
	if err != nil || len(wheels) != len(list) {
		return fmt.Errorf("%d wheels, expected %d: %w", len(wheels), len(list), err)
	}
	for _, wheel := range wheels {
		if err := cost.Run(dir, "python3", "-m", "zipfile", "-e", wheel, "."); err != nil {
			return err
		}
	}
	// The module zipfile leaves out who may execute a file.
	return cost.Run(dir, "sh", "-c", "rm -r wheels && find . -type f \\( -path '*/bin/*' \\) -exec chmod +x {} +")
}

// once is a folder that a function fills if it is not there. What a run leaves that is interrupted is
// filled again.
func once(dir string, fill func(dir string) error) (string, error) {
	mark := filepath.Join(dir, "complete")
	if _, err := os.Stat(mark); err == nil {
		return dir, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := fill(dir); err != nil {
		return "", err
	}
	return dir, os.WriteFile(mark, nil, 0o600)
}
