/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets a virtual machine up, which has no programs for that. */
#ifndef ICBENCH_SETUP_H
#define ICBENCH_SETUP_H

/* Does one thing, and returns an exit code:
 *   ready                        nothing: it can be asked
 *   pages N                      N huge pages of the default size
 *   link IP PREFIX MTU           the network interface becomes an endpoint, without ARP
 *   neighbour MAC IP             at that interface, for good
 *   driver PCI NAME              gives a device to another driver */
int setup(int argc, char **argv);

#endif
