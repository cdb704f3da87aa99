// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"errors"
	"syscall"
)

// probe refuses: perf is a program of Linux.
func (p *perfPlan) probe(int) error { return errors.New("perf is a program of Linux") }

func recorderAttributes() *syscall.SysProcAttr { return nil }
