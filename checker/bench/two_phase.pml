/* Two-phase commit, as one writes it for Spin: a process for each party and one that decides.
 *
 * What is said stays said, in plain variables: with channels there would be other states.
 * A branch is a d_step, so a party is always at the head of its loop, and only variables count.
 * For other sizes: spin -DN=3, the smallest that is published (288 states), or -DN=6.
 */

#ifndef N
#define N 8
#endif

#if N == 3
#define OVER(of, op)  (of(0) op of(1) op of(2))
#elif N == 6
#define OVER(of, op)  (of(0) op of(1) op of(2) op of(3) op of(4) op of(5))
#elif N == 8
#define OVER(of, op)  (of(0) op of(1) op of(2) op of(3) op of(4) op of(5) op of(6) op of(7))
#endif

#define HEARD(i)      heard[i]
#define COMMITTED(i)  stand[i] == committed
#define ABORTED(i)    stand[i] == aborted

mtype = { working, prepared, committed, aborted, undecided };

mtype stand[N] = working;      /* how far each party has come */
mtype decision = undecided;    /* what the coordinator has decided */
bool voted[N];                 /* who has said that it is prepared */
bool heard[N];                 /* whose vote the coordinator has heard */
bool commit;                   /* the coordinator has said: commit */
bool abort;                    /* the coordinator has said: abort */

active [N] proctype Party()
{
end:  /* it may stop here */
  do
  :: d_step { stand[_pid] == working -> stand[_pid] = prepared; voted[_pid] = true }
  :: d_step { stand[_pid] == working -> stand[_pid] = aborted }
  :: d_step { commit -> stand[_pid] = committed }
  :: d_step { abort -> stand[_pid] = aborted }
  :: d_step { decision == undecided && voted[_pid] -> heard[_pid] = true }
  od
}

active proctype Coordinator()
{
end:
  do
  :: d_step { decision == undecided && OVER(HEARD, &&) -> decision = committed; commit = true }
  :: d_step { decision == undecided -> decision = aborted; abort = true }
  /* asked in every state, and never true: nobody has committed while another has aborted */
  :: d_step { OVER(COMMITTED, ||) && OVER(ABORTED, ||) -> assert(false) }
  od
}
