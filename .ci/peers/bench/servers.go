// SPDX-License-Identifier: Apache-2.0

package main

// servers TODO
func servers(*bench) ([]*contest, error) { return nil, nil }
