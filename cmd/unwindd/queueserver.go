// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package main

import "github.com/unwindd/unwindd/engine/service/fleet/queueserver"

func init() { startQueue = queueserver.Start }
