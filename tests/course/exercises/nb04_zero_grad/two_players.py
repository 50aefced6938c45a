"""Right answers to the exercise ``two_players``."""


def cleared_in_time(generator, critic, opt_g, opt_c, says, batches):
    for real, noise in batches:
        opt_g.zero_grad()
        says(critic(generator(noise)), True).backward()
        opt_g.step()

        opt_c.zero_grad()
        says(critic(real), True).backward()
        says(critic(generator(noise).detach()), False).backward()
        opt_c.step()


def frozen_meanwhile(generator, critic, opt_g, opt_c, says, batches):
    for real, noise in batches:
        opt_g.zero_grad()
        critic.requires_grad_(False)
        says(critic(generator(noise)), True).backward()
        critic.requires_grad_(True)
        opt_g.step()

        says(critic(real), True).backward()
        says(critic(generator(noise).detach()), False).backward()
        opt_c.step()
        opt_c.zero_grad()


RIGHT = (cleared_in_time, frozen_meanwhile)
